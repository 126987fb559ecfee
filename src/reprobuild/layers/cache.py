"""Finished layers by key: what a layer is, and its paths. The blobs lie in the image store.

``layers/KEY.json`` is written last, so a layer is there as a whole or not at all.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ..home import Home, atomic_write, make_folders, storage_errors
from .tar import Layer, Record


@dataclass(frozen=True, slots=True)
class Cached:
    """A finished layer and all of its paths, in the order of the tar."""

    layer: Layer
    records: tuple[Record, ...]


class LayerCache:
    """The finished layers of a `Home`."""

    def __init__(self, home: Home) -> None:
        self._folder = home.folder("layers")
        self.blobs = home.folder("oci") / "blobs" / "sha256"
        make_folders(self.blobs)

    def blob(self, digest: str) -> Path:
        """Where the blob of a digest is or will be."""
        return self.blobs / digest.removeprefix("sha256:")

    def get(self, key: str) -> Cached | None:
        """Return a layer; None when it, its list of paths or its blob is missing or cut short."""
        try:
            data = json.loads((self._folder / f"{key}.json").read_bytes())
            layer = Layer(**data["layer"])
            if self.blob(layer.digest).stat().st_size != layer.size:
                return None
            return Cached(layer, tuple(Record(*record) for record in data["records"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, blob: Path, layer: Layer, records: list[Record]) -> Cached:
        """Take over a finished blob from a temporary file on the same disk."""
        with storage_errors(self.blobs):
            blob.chmod(0o444)
            blob.replace(self.blob(layer.digest))
        rows = [[r.path, r.kind, r.mode, r.content, r.owner] for r in records]
        text = json.dumps({"layer": asdict(layer), "records": rows}, separators=(",", ":"))
        atomic_write(self._folder / f"{key}.json", text.encode())
        return Cached(layer, tuple(records))

    def keys_of(self, digests: set[str]) -> dict[str, bool]:
        """Return each key → whether its blob is one of ``digests``."""
        found = {}
        for path in sorted(self._folder.glob("*.json")):
            cached = self.get(path.stem)
            found[path.stem] = cached is not None and cached.layer.digest in digests
        return found

    def forget(self, key: str) -> None:
        """Remove a key; its blob belongs to the image store."""
        with storage_errors(self._folder):
            (self._folder / f"{key}.json").unlink(missing_ok=True)
