"""Cache of finished layers by key: descriptors and paths. The blobs are in the image store.

``layers/KEY.json`` is written last, so a layer is there as a whole or not at all. ``layers/PLAN.plan`` has
the keys of all layers of a plan: with it, nobody needs the wheels to know them. Both are sealed with a hash,
and a blob counts once its bytes are verified: of a damaged one another image would be made.

What came from a registry is kept apart, as ``layers/KEY-MARK.json`` with the hash of what a record says of
it. It is there for builds with that record alone: the others on this machine have not agreed to it. So is all
that is made once such a layer is in use, since its programs may have had a hand in it: the mark of these, and
of the plans with them, is the hash of the whole record.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import StorageError
from ..host.console import Console
from ..host.home import Home, atomic_write, open_regular, put_off, storage_errors
from ..host.verified import read_sealed, sealed
from ..host.workers import workers
from ..lock.layer_record import LayerRecord, RecordedLayer
from ..oci.blobs import Blobs
from ..oci.tar_writer import Layer, Record

_SHA256 = re.compile(rb'"([0-9a-f]{64})"')
_HEAD = 8192
"""Bytes at the start of a layer's file, in which its artifacts are."""


@dataclass(frozen=True, slots=True)
class Cached:
    """A finished layer and all of its paths, in the order of the tar."""

    layer: Layer
    records: tuple[Record, ...]
    artifacts: tuple[str, ...] = ()
    """The sha256 of the artifacts in it."""


class LayerCache:
    """The finished layers of a `Home`: those made here, and after them those of a record."""

    def __init__(self, home: Home, record: LayerRecord | None = None, console: Console | None = None) -> None:
        """Damaged files are reported to ``console``."""
        self._console = console or Console()
        self._folder = home.folder("layers")
        self._blobs = Blobs(home)
        self._record = record or LayerRecord(images={}, layers={})
        self._mark = hashlib.sha256(self._record.dump()).hexdigest()
        self._is_private = False
        """Whether a layer is in use that is there for this record alone."""

    def blob(self, digest: str) -> Path:
        """Where the blob of a digest is or will be."""
        return self._blobs.path(digest)

    def get(self, key: str) -> Cached | None:
        """Return a layer; None when it, its list of paths or its blob is missing or damaged.

        A damaged blob is removed.
        """
        if (own := self._whole(key)) is not None:
            return own
        recorded = self._record.layers.get(key)
        taken = None if recorded is None else self._whole(_name(recorded))
        if (found := taken or self._whole(f"{key}-{self._mark}")) is not None:
            self._is_private = True
        return found

    def _whole(self, name: str) -> Cached | None:
        cached = self._read(name)
        if cached is not None and (fault := self._blobs.fault(cached.layer.digest)):
            self._console.warn(f"{self.blob(cached.layer.digest)}: {fault}: its layer is made again")
            return None
        return cached

    def _place(self, name: str) -> str:
        """Return the name under which to store a new entry."""
        return f"{name}-{self._mark}" if self._is_private else name

    def _read(self, name: str) -> Cached | None:
        """Return a layer by its record, even if its blob is gone."""
        try:
            data = json.loads(self._content(name, "json"))
            records = tuple(Record(*record) for record in data["records"])
            return Cached(Layer(**data["layer"]), records, tuple(data["artifacts"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _content(self, name: str, suffix: str) -> bytes:
        """Return the content of a sealed file; empty for one that is missing or damaged."""
        path = self._folder / f"{name}.{suffix}"
        with storage_errors(path):
            return read_sealed(path, name)

    def put(self, key: str, blob: Path, cached: Cached) -> Cached:
        """Take over a finished blob from a temporary file on the same disk."""
        self._blobs.take(blob, cached.layer.digest)
        return self._tell(self._place(key), cached)

    def put_taken(self, recorded: RecordedLayer, blob: Path, cached: Cached) -> Cached:
        """Take over as `put` what a registry gave for a layer of a record."""
        self._blobs.take(blob, cached.layer.digest)
        return self._tell(_name(recorded), cached)

    def take_over(self, key: str, blob: Path, cached: Cached) -> Cached:
        """Add a layer whose blob is a verified file, without moving the file."""
        self._blobs.share(blob, cached.layer.digest)
        return self._tell(self._place(key), cached)

    def keys(self, plan: str) -> Sequence[str] | None:
        """Return the keys of the layers of a plan, lowest first; None where they were not remembered."""
        return (
            self._remembered(plan) or self._record.keys_of(plan) or self._remembered(f"{plan}-{self._mark}")
        )

    def _remembered(self, plan: str) -> list[str] | None:
        try:
            found = json.loads(self._content(plan, "plan"))
        except ValueError:
            return None
        good = isinstance(found, list) and all(isinstance(key, str) for key in found)
        return found if good else None

    def known(self, plan: str) -> list[Cached] | None:
        """Return all layers of a plan from the cache, lowest first; None if one is missing."""
        # The first time after a boot, all blobs are hashed.
        with workers(len(os.sched_getaffinity(0))) as pool:
            found = list(pool.map(self.get, self.keys(plan) or ()))
        layers = [cached for cached in found if cached is not None]
        return layers if layers and len(layers) == len(found) else None

    def made_of(self) -> frozenset[str]:
        """Return the sha256 of what layers are made of; of one with hundreds of artifacts, of some."""
        found: set[str] = set()
        for path in self._folder.glob("*.json"):
            with suppress(OSError), open_regular(path) as file:
                found.update(name.decode() for name in _SHA256.findall(file.read(_HEAD)))
        return frozenset(found)

    def remember(self, plan: str, keys: Sequence[str]) -> None:
        """Note the keys of the layers of a plan, all of which are there."""
        plan = self._place(plan)
        if self._remembered(plan) != list(keys):
            content = sealed(plan, json.dumps(keys).encode())
            atomic_write(self._folder / f"{plan}.plan", content, sync=False)

    def _tell(self, name: str, cached: Cached) -> Cached:
        rows = [[r.path, r.kind, r.mode, r.content, r.owner] for r in cached.records]
        data = {"layer": asdict(cached.layer), "artifacts": cached.artifacts, "records": rows}
        content = json.dumps(data, separators=(",", ":")).encode()
        atomic_write(self._folder / f"{name}.json", sealed(name, content), sync=False)
        return cached

    def forget_all_but(self, digests: Collection[str], failures: list[StorageError]) -> tuple[set[str], int]:
        """Forget all layers whose blob is not one of ``digests``; return the artifacts of the others.

        The second item is the bytes freed. The blobs are the image store's to remove. ``failures`` gets an
        error for each record that cannot be removed.
        """
        artifacts: set[str] = set()
        freed = 0
        with storage_errors(self._folder):
            records, plans = sorted(self._folder.glob("*.json")), sorted(self._folder.glob("*.plan"))
        for path in records:
            with put_off(failures), storage_errors(path):
                cached = self._read(path.stem)
                if cached is not None and cached.layer.digest in digests:
                    artifacts.update(cached.artifacts)
                else:
                    size = path.lstat().st_size
                    path.unlink()
                    freed += size
        for path in plans:
            with put_off(failures), storage_errors(path):
                keys = self._remembered(path.stem) or [""]
                if not all(key and any(self._folder.glob(f"{glob.escape(key)}*.json")) for key in keys):
                    path.unlink()
        return artifacts, freed


def _name(recorded: RecordedLayer) -> str:
    said = json.dumps(asdict(recorded), sort_keys=True).encode()
    return f"{recorded.key}-{hashlib.sha256(said).hexdigest()}"
