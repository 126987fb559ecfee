"""Documents about the images of a home: a folder for each image, a file for each document.

What is kept is no more trusted than what a registry sends: whoever relies on it verifies it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from ...errors import EvidenceError
from ...host.console import Console
from ...host.home import Home, atomic_write, make_folders, open_regular, storage_errors
from ...host.host import Host
from ...host.removal import remove_tree
from ...host.verified import sealed, unsealed
from ...oci.documents import DOCUMENT_LIMIT
from .signatures import statement_in
from .statements import Kind, read_statement

_ELSEWHERE = "elsewhere"
"""An empty file beside documents: Docker or Podman has their image, too."""

_SEALED = ".sealed"
"""The end of the name of a document with a seal: what is not signed has nothing else that shows damage."""

MOST = 64
"""The most documents about one image that are read."""


def keep(home: Home, manifest: str, documents: Mapping[Kind, bytes]) -> None:
    """Store the documents of an image by its manifest's digest; they replace earlier ones of their kinds."""
    folder = _folder(home, manifest)
    make_folders(folder)
    for kind, document in documents.items():
        # No sync, as for the image itself: it would wait for all that was built.
        content = sealed(f"{folder.name}/{kind}", document)
        atomic_write(folder / f"{kind}{_SEALED}", content, sync=False)


def keep_vote(home: Home, manifest: str, document: bytes, signer: str) -> Path:
    """Store the statement of a rebuild beside those of others, by the ID of its key; return the file.

    It replaces an earlier one of that key, which would count no more.
    """
    folder = _folder(home, manifest)
    make_folders(folder)
    kind = f"rebuild.{signer[:16]}"
    path = folder / f"{kind}{_SEALED}"
    atomic_write(path, sealed(f"{folder.name}/{kind}", document))
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
    top = home.root / "evidence"
    with storage_errors(top):
        for folder in sorted(path for path in (top.iterdir() if top.exists() else ()) if path.is_dir()):
            of_store = (folder / f"provenance{_SEALED}").exists() and not (folder / _ELSEWHERE).exists()
            if of_store and f"sha256:{folder.name}" not in digests:
                freed += sum(path.lstat().st_size for path in folder.iterdir())
                remove_tree(folder)
    return freed


def kept(host: Host, *digests: str) -> Mapping[str, bytes]:
    """Return the documents about an image, by the name of their file.

    By the digest of its manifest, or by that of its configuration, by which Docker and Podman know an image.
    A damaged one is reported and removed.
    """
    top = host.home.folder("evidence")
    with storage_errors(top):
        for digest in digests:
            if found := _documents(_folder(host.home, digest), host.console):
                return found
        for folder in sorted(path for path in top.iterdir() if path.is_dir()):
            if (found := _documents(folder, host.console)) and _is_about(found, set(digests)):
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


def _documents(folder: Path, console: Console) -> Mapping[str, bytes]:
    if not folder.is_dir():
        return {}
    found = {}
    # Votes, of which there may be many, come last.
    paths = sorted(folder.glob(f"*{_SEALED}"), key=lambda path: (path.name.startswith("rebuild."), path.name))
    for path in paths[:MOST]:
        data, kind = read_bounded(path), path.stem
        document = unsealed(f"{folder.name}/{kind}", data)
        if document is None and len(data) <= DOCUMENT_LIMIT:
            path.unlink(missing_ok=True)
            console.warn(
                f"{path} is damaged, so it was removed: `reprobuild image` with the lock writes it again"
                " (with --sign-key signed)"
            )
            continue
        found[f"{kind}.json"] = document or data  # a reader refuses what is too large
    return found


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
