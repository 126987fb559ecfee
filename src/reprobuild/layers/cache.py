"""Finished layers by key: what a layer is, and its paths. The blobs lie in the image store.

``layers/KEY.json`` is written last, so a layer is there as a whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

from ..host.home import Home, atomic_write, storage_errors
from ..oci.blobs import Blobs
from ..oci.tar_writer import Layer, Record


@dataclass(frozen=True, slots=True)
class Cached:
    """A finished layer and all of its paths, in the order of the tar."""

    layer: Layer
    records: tuple[Record, ...]
    artifacts: tuple[str, ...] = ()
    """The sha256 of the artifacts in it."""


class LayerCache:
    """The finished layers of a `Home`."""

    def __init__(self, home: Home) -> None:
        self._folder = home.folder("layers")
        self._blobs = Blobs(home)

    def blob(self, digest: str) -> Path:
        """Where the blob of a digest is or will be."""
        return self._blobs.path(digest)

    def get(self, key: str) -> Cached | None:
        """Return a layer; None when it, its list of paths or its blob is missing or cut short."""
        try:
            data = json.loads((self._folder / f"{key}.json").read_bytes())
            layer = Layer(**data["layer"])
            if self.blob(layer.digest).stat().st_size != layer.size:
                return None
            records = tuple(Record(*record) for record in data["records"])
            return Cached(layer, records, tuple(data["artifacts"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def put(self, key: str, blob: Path, cached: Cached) -> Cached:
        """Take over a finished blob from a temporary file on the same disk."""
        self._blobs.take(blob, cached.layer.digest)
        return self._tell(key, cached)

    def take_over(self, key: str, blob: Path, cached: Cached) -> Cached:
        """Add a layer whose blob is a verified file that stays where it is."""
        self._blobs.share(blob, cached.layer.digest)
        return self._tell(key, cached)

    def _tell(self, key: str, cached: Cached) -> Cached:
        rows = [[r.path, r.kind, r.mode, r.content, r.owner] for r in cached.records]
        data = {"layer": asdict(cached.layer), "artifacts": cached.artifacts, "records": rows}
        content = json.dumps(data, separators=(",", ":")).encode()
        atomic_write(self._folder / f"{key}.json", content, sync=False)
        return cached

    def forget_all_but(self, digests: Collection[str]) -> tuple[set[str], int]:
        """Forget all layers whose blob is not one of ``digests``; return the artifacts of the others.

        The second item is the bytes freed. The blobs are the image store's to remove.
        """
        artifacts: set[str] = set()
        freed = 0
        with storage_errors(self._folder):
            for path in sorted(self._folder.glob("*.json")):
                cached = self.get(path.stem)
                if cached is not None and cached.layer.digest in digests:
                    artifacts.update(cached.artifacts)
                else:
                    freed += path.stat().st_size
                    path.unlink()
        return artifacts, freed
