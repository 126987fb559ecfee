"""The index of the image store: which images there are, and their names.

``index.json`` is what other tools read. The sealed copy beside it counts: a name changed by damage is still a
name. Where neither can be read, the images are found again by their manifests; their names are lost.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import StorageError
from ..host.console import Console
from ..host.home import atomic_write, open_regular, storage_errors, write_all
from ..host.os_reasons import FULL
from ..host.verified import sealed, unsealed
from ..request.table import DIGEST
from .documents import (
    DOCUMENT_LIMIT,
    LAYOUT,
    MANIFEST_TYPE,
    index_document,
    manifest_entry,
    parse_json,
    sha256,
)

RECOVERED = "dev.reprobuild.recovered"
"""The annotation of an image whose name was lost with the index."""

_BETWEEN_SECONDS = 0.05
_BEGINS = b'{"annotations":'
"""The first bytes of each manifest that reprobuild writes; no layer begins with them."""


class ImageIndex:
    """The index in a folder; who changes it holds the home's lock ``images``."""

    def __init__(self, folder: Path, console: Console) -> None:
        self._folder, self._console = folder, console
        self._file, self._copy = folder / "index.json", folder / "index.sealed"

    def entries(self) -> list[dict[str, Any]]:
        """Return the index entry of each image and name. Raises `StorageError`."""
        faults: list[StorageError] = []
        plain, copy = _read(self._file, faults), _read(self._copy, faults)
        kept = unsealed("index", copy) if copy is not None else None
        entries = _entries(plain)
        if kept is not None:
            if entries is None:
                self._console.warn(f"{self._file} is damaged or missing: its copy {self._copy.name} is used")
            elif plain != kept and self._stays_changed(plain, copy):
                self._console.warn(
                    f"{self._file} was changed by another program: its copy {self._copy.name} is used;"
                    " `reprobuild load` takes an image into the store"
                )
            return _entries(kept) or []
        if faults and entries is None:
            raise faults[0]  # its names may come back with the disk
        if entries is not None:
            return entries  # of an earlier version, or the copy is damaged
        if plain is None and copy is None:
            return []
        self._console.warn(
            f"{self._file} is damaged, and its copy too: the images were found again, without their names;"
            " `reprobuild image` with its lock names one again, `clean` keeps them, `remove DIGEST` does not"
        )
        return [manifest_entry(digest, size, {RECOVERED: "true"}) for digest, size in self._manifests()]

    def _stays_changed(self, plain: bytes | None, copy: bytes | None) -> bool:
        """Whether both files are as they were: `write` writes one after the other, without a pause."""
        time.sleep(_BETWEEN_SECONDS)
        return (_read(self._file, []), _read(self._copy, [])) == (plain, copy)

    def write(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Write the index anew. Raises `StorageError`."""
        if _read(self._folder / "oci-layout", []) != LAYOUT:
            atomic_write(self._folder / "oci-layout", LAYOUT)
        content = index_document(entries)
        # The copy counts, so it is last: where one of them cannot be written, no image loses its name.
        for path, data in ((self._file, content), (self._copy, sealed("index", content))):
            if (old := _read(path, [])) == data:
                continue
            try:
                atomic_write(path, data, sync=False)
            except StorageError as error:
                full = isinstance(error.__cause__, OSError) and error.__cause__.errno in FULL
                if not full or len(data) > len(old or b""):
                    raise
                _write_over(path, data)

    def reset(self) -> None:
        """Forget all images, also where the index is damaged. Raises `StorageError`."""
        with storage_errors(self._folder):
            self._copy.unlink(missing_ok=True)
            self._file.unlink(missing_ok=True)

    def _manifests(self) -> list[tuple[str, int]]:
        """Return digest and size of the manifests among the blobs."""
        found = []
        with storage_errors(self._folder):
            for blob in sorted((self._folder / "blobs" / "sha256").iterdir()):
                if blob.stat().st_size > DOCUMENT_LIMIT:
                    continue
                with open_regular(blob) as file:
                    data = file.read() if file.peek(len(_BEGINS)).startswith(_BEGINS) else b""
                if sha256(data) == f"sha256:{blob.name}" and _is_manifest(data):
                    found.append((f"sha256:{blob.name}", len(data)))
        return found


def _read(path: Path, faults: list[StorageError]) -> bytes | None:
    """Return the content of a file, None for a missing one. ``faults`` gets a fault of the disk."""
    try:
        with storage_errors(path), open_regular(path) as file:
            return file.read()
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        faults.append(error)
        return None


def _write_over(path: Path, data: bytes) -> None:
    """Write a file in the place of its old bytes: a full disk must let images go, but takes no new file.

    A process that is killed here leaves half of it: the other of the two is whole. Raises `StorageError`.
    """
    with storage_errors(path), path.open("r+b", buffering=0) as file:
        write_all(file, data)
        file.truncate()


def _is_manifest(data: bytes) -> bool:
    try:
        return bool(parse_json(data)["mediaType"] == MANIFEST_TYPE)
    except (ValueError, KeyError, TypeError):
        return False


def _entries(data: bytes | None) -> list[dict[str, Any]] | None:
    """Return the entries of an index; None for one that is damaged or missing."""
    try:
        entries: list[dict[str, Any]] = parse_json(data or b"")["manifests"]
        good = all(
            DIGEST.fullmatch(entry["digest"]) and isinstance(entry.get("annotations", {}), dict)
            for entry in entries
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return entries if good else None
