"""Layers below the packages: base image, Debian, and a standalone Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ..fetch.store import Store
from ..host.host import Host
from ..lock.model import Lock
from ..oci.tar_writer import LayerWriter
from . import unpacked_layers
from .base_image import base_layers, write_on_top
from .cache import Cached
from .debian import write_debian
from .layer_writing import Drafts
from .plan import SYSTEM, plan
from .standalone_python import write_standalone


class SystemLayers:
    """The system of a lock. All that it is made of must be in the store."""

    def __init__(self, lock: Lock, store: Store, host: Host, drafts: Drafts) -> None:
        self._lock, self._store, self._host, self._drafts = lock, store, host, drafts
        self._cache = drafts.cache

    def artifacts(self) -> list[str]:
        """Return the sha256 of its artifacts, without those of the base image."""
        standalone = [] if self._lock.standalone is None else [self._lock.standalone.sha256]
        return [*(p.sha256 for p in self._lock.debian), *standalone]

    def layers(self) -> list[Cached]:
        """Return its layers, lowest first, made where they are not in the cache."""
        layers = [layer for layer in plan(self._lock) if layer.kind in SYSTEM]
        found: list[Cached] = []
        if self._lock.base is not None:
            found += base_layers(self._lock.base, layers, self._store, self._cache)
        for layer in layers[len(found) :]:
            cached = self._cache.get(layer.key)
            if cached is None:
                with self._drafts.open(layer.key) as out:
                    writer = LayerWriter(out)
                    artifacts = [p.sha256 for p in self._lock.debian]
                    if layer.kind == "python":
                        artifacts = self._write_standalone(found, writer)
                    elif found:
                        owners = {r.path: r.owner for cached in found for r in cached.records}
                        below = self.unpacked(found)
                        home = self._host.home
                        with unpacked_layers.in_use(below):
                            write_on_top(self._lock, self._store, below, home, writer, owners=owners)
                    else:
                        write_debian(self._lock, self._store, self._host.home, writer)
                    cached = self._drafts.put(layer.key, out, writer, artifacts)
            found.append(cached)
        return found

    def of(self, kind: Literal["debian", "python"]) -> Cached:
        """Return the layer of a kind that the system has one of."""
        kinds = [layer.kind for layer in plan(self._lock) if layer.kind in SYSTEM]
        return self.layers()[kinds.index(kind)]

    def unpacked(self, below: Sequence[Cached]) -> list[Path]:
        """Return the folders of some layers."""

        def one(cached: Cached) -> Path:
            blob, diff_id = self._cache.blob(cached.layer.digest), cached.layer.diff_id
            return unpacked_layers.unpack(self._host, blob, diff_id, lambda _: None)

        return [one(cached) for cached in below]

    def _write_standalone(self, found: Sequence[Cached], writer: LayerWriter) -> list[str]:
        """Write the layer of the standalone Python above some others; return what it is made of."""
        assert self._lock.standalone is not None
        sha256 = self._lock.standalone.sha256
        below = self.unpacked(found)
        with self._host.home.scratch("python") as folder, unpacked_layers.in_use(below):
            write_standalone(self._lock, self._store.path(sha256), below, folder, writer)
        return [sha256]
