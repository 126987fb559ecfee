"""Read layers as overlayfs stores them on disk, without mounting them.

What a layer takes away is a character device 0:0, and a folder that hides all below it has an attribute
(Linux, filesystems/overlayfs.rst). All of it is a stranger's, and held to what a layer of a tar may contain.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..host.workers import sha256_of, workers
from .merge_layers import MOST_KEPT, Keep, KeptContents, LayerFiles
from .tar_fields import MOST_ID, LayerRefused, attribute_lines, clean_path, default_device
from .tar_reader import MOST_BYTES, MOST_ENTRIES
from .tar_writer import Record

_NOTES = b"trusted.overlay."
_OPAQUE = "trusted.overlay.opaque"
_HARMLESS = (_OPAQUE, *(f"trusted.overlay.{name}" for name in ("impure", "nlink", "origin", "upper", "uuid")))
"""Notes of overlayfs that change nothing of what is seen. Others move folders or contents between layers."""


@dataclass(frozen=True, slots=True)
class _File:
    """A regular file to be hashed, as `os.lstat` knew it."""

    layer: LayerFiles
    path: str
    place: bytes
    status: os.stat_result
    attributes: str


def sees_overlay_notes(folder: Path) -> bool:
    """Whether this process is shown the attributes by which overlayfs hides files.

    Without CAP_SYS_ADMIN outside any user namespace they look as if they were not there (xattr(7)).
    ``folder`` is one to try it on, and stays as it is.
    """
    try:
        os.removexattr(folder, "trusted.reprobuild.none")
    except OSError as error:
        return error.errno == errno.ENODATA
    return True


def read_folders(folders: Sequence[Path], keep: Keep, contents: KeptContents) -> list[LayerFiles]:
    """Return what some layers have, the lowest first; see `merge_layers.read_layer`.

    A thread a processor hashes. Raises `LayerRefused` and OSError.
    """
    layers = [LayerFiles() for _ in folders]
    files = [
        file
        for folder, layer in zip(folders, layers, strict=True)
        for file in _walk(os.fsencode(folder), layer)
    ]
    # Of the names of one file one is read, and the largest first: no processor is left with the last of them.
    wanted = sorted({_identity(file): file for file in files}.values(), key=lambda file: -file.status.st_size)
    with workers(len(os.sched_getaffinity(0))) as pool:
        hashed = dict(zip(map(_identity, wanted), pool.map(_digest, wanted), strict=True))
    for file in files:
        digest = hashed[_identity(file)]
        mode, owner = stat.S_IMODE(file.status.st_mode), _owner(file.status, file.path)
        file.layer.entries[file.path] = Record(file.path, "file", mode, digest, owner, file.attributes)
        if keep(file.path, file.status.st_size):
            contents.keep(digest, _content(file, digest))
    return layers


def _identity(file: _File) -> tuple[int, int]:
    return file.status.st_dev, file.status.st_ino


def _walk(folder: bytes, layer: LayerFiles) -> Iterator[_File]:
    """Record all entries of a layer but regular files, and yield those."""
    entries, size, open_folders = 0, 0, [b""]
    while open_folders:
        inside = open_folders.pop()
        for entry in sorted(os.scandir(b"/".join((folder, inside))), key=lambda entry: entry.name):
            name = b"/".join((inside, entry.name)) if inside else entry.name
            path = clean_path(name.decode("utf-8", "surrogateescape"))
            status = entry.stat(follow_symlinks=False)
            entries, size = entries + 1, size + (status.st_size if stat.S_ISREG(status.st_mode) else 0)
            if entries > MOST_ENTRIES:
                raise LayerRefused(f"it has more than {MOST_ENTRIES:,} entries")
            if size > MOST_BYTES:
                raise LayerRefused(f"{path!r} makes it longer than {MOST_BYTES >> 30} GiB")
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                layer.gone.append(path)
                continue
            attributes, opaque = _attributes(entry.path, path)
            if stat.S_ISDIR(status.st_mode):
                open_folders.append(name)
                if opaque:
                    layer.emptied.append(path)
            if stat.S_ISREG(status.st_mode):
                yield _File(layer, path, entry.path, status, attributes)
            elif not stat.S_ISSOCK(status.st_mode):  # which no tar holds
                layer.entries[path] = _record(path, entry.path, status, attributes)


def _record(path: str, place: bytes, status: os.stat_result, attributes: str) -> Record:
    mode, owner = stat.S_IMODE(status.st_mode), _owner(status, path)
    if stat.S_ISDIR(status.st_mode):
        return Record(path, "dir", mode, "-", owner, attributes)
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(place).decode("utf-8", "surrogateescape")  # noqa: PTH115 -- of bytes
        return Record(path, "link", 0o777, target, owner, attributes)
    if stat.S_ISFIFO(status.st_mode):
        return Record(path, "other", mode, "6 0:0", owner, attributes)
    kind = "c" if stat.S_ISCHR(status.st_mode) else "b"
    numbers = os.major(status.st_rdev), os.minor(status.st_rdev)
    return Record(path, "other", mode, f"3 {default_device(path, kind, *numbers)}", owner, attributes)


def _owner(status: os.stat_result, path: str) -> str:
    if max(status.st_uid, status.st_gid) > MOST_ID:
        raise LayerRefused(f"{path!r} has an owner that Linux does not know")
    return f"{status.st_uid}:{status.st_gid}"


def _attributes(place: bytes, path: str) -> tuple[str, bool]:
    """Return the extended attributes as a record has them, and whether all below it is hidden."""
    names = os.listxattr(place, follow_symlinks=False)
    if not names:
        return "", False
    found: dict[str, bytes] = {}
    for name in names:
        with suppress(FileNotFoundError):
            found[name] = os.getxattr(place, name, follow_symlinks=False)
    for name in found:
        if os.fsencode(name).startswith(_NOTES) and name not in _HARMLESS:
            raise LayerRefused(f"{path!r} has the attribute {name}, which overlayfs alone can follow")
    opaque = found.get(_OPAQUE, b"")
    if opaque not in (b"", b"y"):
        raise LayerRefused(f"{path!r} has an attribute that overlayfs alone can follow")
    return attribute_lines(found.items()), opaque == b"y"


def _open(file: _File) -> int:
    return os.open(file.place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)


def _digest(file: _File) -> str:
    with os.fdopen(_open(file), "rb", buffering=0) as opened:
        return sha256_of(opened)


def _content(file: _File, digest: str) -> bytes:
    if file.status.st_size > MOST_KEPT:
        raise LayerRefused(
            f"{file.path!r} has {file.status.st_size:,} bytes; at most {MOST_KEPT:,} of it are looked at"
        )
    with os.fdopen(_open(file), "rb") as opened:
        content = opened.read(MOST_KEPT + 1)
    if hashlib.sha256(content).hexdigest() != digest:
        raise LayerRefused(f"{file.path!r} changes while it is read")
    return content
