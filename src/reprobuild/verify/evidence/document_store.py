"""Documents about the images of a home: a folder for each image, a file for each document.

What is kept is no more trusted than what a registry sends: whoever relies on it verifies it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from ...errors import EvidenceError
from ...host.home import Home, atomic_write, make_folders, open_regular, storage_errors
from ...host.removal import remove_tree
from ...oci.documents import DOCUMENT_LIMIT
from .signatures import statement_in
from .statements import Kind, read_statement

_ELSEWHERE = "elsewhere"
"""An empty file beside documents: Docker or Podman has their image, too."""

MOST = 64
"""Documents about one image that are read."""


def keep(home: Home, manifest: str, documents: Mapping[Kind, bytes]) -> None:
    """Store the documents of an image by its manifest's digest; they replace earlier ones of their kinds."""
    folder = _folder(home, manifest)
    make_folders(folder)
    for kind, document in documents.items():
        # No sync, as for the image itself: it would wait for all that was built.
        atomic_write(folder / f"{kind}.json", document, sync=False)


def keep_vote(home: Home, manifest: str, document: bytes) -> Path:
    """Store the statement of a rebuild beside those of others; return the file."""
    folder = _folder(home, manifest)
    make_folders(folder)
    path = folder / f"rebuild.{hashlib.sha256(document).hexdigest()[:16]}.json"
    atomic_write(path, document)
    return path


def mark_elsewhere(home: Home, digest: str) -> None:
    """Let the documents about an image outlive it in the embedded store: an engine that has it keeps none."""
    folder = _folder(home, digest)
    if folder.is_dir():
        atomic_write(folder / _ELSEWHERE, b"", sync=False)


def forget_all_but(home: Home, digests: Collection[str]) -> int:
    """Remove what was written about images of the embedded store but these; return the bytes freed.

    Stays: what is about an image elsewhere, and a vote about one that never was in the store.
    """
    freed = 0
    top = home.folder("evidence")
    with storage_errors(top):
        for folder in sorted(path for path in top.iterdir() if path.is_dir()):
            of_store = (folder / "provenance.json").exists() and not (folder / _ELSEWHERE).exists()
            if of_store and f"sha256:{folder.name}" not in digests:
                freed += sum(path.lstat().st_size for path in folder.iterdir())
                remove_tree(folder)
    return freed


def kept(home: Home, *digests: str) -> Mapping[str, bytes]:
    """Return the documents about an image, by the name of their file.

    By the digest of its manifest, or by that of its configuration, by which Docker and Podman know an image.
    """
    top = home.folder("evidence")
    with storage_errors(top):
        for digest in digests:
            if found := _documents(_folder(home, digest)):
                return found
        for folder in sorted(path for path in top.iterdir() if path.is_dir()):
            if (found := _documents(folder)) and _is_about(found, set(digests)):
                return found
    return {}


def as_lines(documents: Mapping[str, bytes]) -> bytes:
    """Return some documents as a file, one a line."""
    # A line break in JSON stands between values only, where a blank means the same.
    return b"".join(
        b" ".join(document.split(b"\n")).strip() + b"\n" for _, document in sorted(documents.items())
    )


def _folder(home: Home, digest: str) -> Path:
    return home.folder("evidence") / digest.removeprefix("sha256:")


def _documents(folder: Path) -> Mapping[str, bytes]:
    if not folder.is_dir():
        return {}
    return {path.name: read_bounded(path) for path in sorted(folder.glob("*.json"))[:MOST]}


def read_bounded(path: Path) -> bytes:
    """Return the bytes of a document, of one that is too large as many as show it. Raises `StorageError`."""
    with storage_errors(path), open_regular(path) as file:
        data: bytes = file.read(DOCUMENT_LIMIT + 1)
        return data


def _is_about(documents: Mapping[str, bytes], digests: set[str]) -> bool:
    for document in documents.values():
        try:
            if read_statement(statement_in(document)).subjects & digests:
                return True
        except EvidenceError:
            continue
    return False
