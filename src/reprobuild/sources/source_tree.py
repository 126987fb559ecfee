"""Pack a source tree into a reproducible archive.

The rule: a POSIX tar (``ustar``, with PAX headers where a name is longer than it takes), not compressed, of
one folder ``source/``; its files and symbolic links in the order of the bytes of their paths, no entries for
folders; mode 755 for what its owner may execute, else 644, 777 for links; owner 0:0 without names; time
1980-01-01. git's own archives are of no use here: they follow attributes, and their compressor.
"""

from __future__ import annotations

import hashlib
import io
import posixpath
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import BuildError
from ..fetch.store import Store
from ..host.home import storage_errors

EPOCH = 315532800
"""1980-01-01, the oldest time that a zip file, and so a wheel, can hold."""

TOP = "source"

MOST_BYTES = 1 << 30
"""Of all files of a tree, which is held in memory; the largest repositories of packages have a tenth."""

MOST_FILES = 200_000

_MODES = {"file": 0o644, "executable": 0o755, "link": 0o777}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file of a tree."""

    path: bytes
    """Relative, with ``/``."""
    kind: Literal["file", "executable", "link"]
    content: bytes
    """Of a link its target."""


@dataclass(frozen=True, slots=True)
class Tree:
    """An archive that is in the store."""

    sha256: str
    size: int
    """Bytes."""


def pack(entries: Iterable[TreeEntry], of: str) -> bytes:
    """Return the archive of a tree; ``of`` names it in messages.

    Raises `BuildError` for a tree without files, or with a path that is not UTF-8, that leaves it, or that is
    there more than once, and for a link that leads outside it.
    """
    every = sorted(entries, key=lambda entry: entry.path)
    if not every:
        raise BuildError(f"{of}: has no files", hint="git counts only what is added to it: git add")
    if len(every) > MOST_FILES or sum(len(entry.content) for entry in every) > MOST_BYTES:
        raise BuildError(f"{of}: has more than {MOST_FILES:,} files, or {MOST_BYTES >> 20} MiB")
    out = io.BytesIO()
    seen: set[bytes] = set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in every:
            name = _name(entry.path, of)
            if entry.path in seen:
                raise BuildError(f"{of}: {name!r} is there more than once")
            seen.add(entry.path)
            info = tarfile.TarInfo(f"{TOP}/{name}")
            info.mode, info.mtime = _MODES[entry.kind], EPOCH
            if entry.kind == "link":
                info.type, info.linkname = tarfile.SYMTYPE, _target(entry, name, of)
                tar.addfile(info)
            else:
                info.size = len(entry.content)
                tar.addfile(info, io.BytesIO(entry.content))
    return out.getvalue()


def keep(data: bytes, store: Store) -> Tree:
    """Put an archive into the store."""
    with storage_errors(store.root):
        store.add_document(data)
    return Tree(hashlib.sha256(data).hexdigest(), len(data))


def _name(path: bytes, of: str) -> str:
    try:
        name = path.decode("utf-8")
    except UnicodeDecodeError:
        raise BuildError(f"{of}: the name of {path!r} is not UTF-8") from None
    if posixpath.normpath(name) != name or name.startswith(("/", "../")) or name == "..":
        raise BuildError(f"{of}: {name!r} is a path outside it")
    return name


def _target(entry: TreeEntry, name: str, of: str) -> str:
    target = _decoded(entry.content, name, of)
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if target.startswith("/") or reached.split("/")[0] == ".." or "\0" in target:
        raise BuildError(
            f"{of}: the link {name} leads outside it, to {target}",
            hint="replace it by a file, or by a link to a file of the same project",
        )
    return target


def _decoded(content: bytes, name: str, of: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise BuildError(f"{of}: the target of the link {name} is not UTF-8") from None


def has(tree: Tree, store: Store) -> Path | None:
    """Return the path of an archive in the store, if it is there."""
    return store.path(tree.sha256) if store.has(tree.sha256, tree.size) else None
