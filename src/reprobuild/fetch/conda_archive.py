"""Validate a conda package's archive before anything in it is unpacked or linked.

A channel's bytes are a stranger's: the linker would follow a link of one package with the path of another,
and unpack whatever the archive swells to. So every path of the archive and its ``paths.json`` is read first.
"""

from __future__ import annotations

import bz2
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import zstandard

from ..errors import BuildError
from ..host.zip_directory import open_zip
from ..lock.packages import CondaPackage
from ..oci.tar_fields import LayerRefused
from ..oci.tar_reader import Entry, Reader
from .plain_path import is_plain
from .wheel_zip import BAD_ARCHIVE, hold_layout

MOST_DOCUMENT = 256 << 20
"""Bytes of a file below ``info/`` that is read as a whole."""
_MOST_LISTED = 32 << 20
"""The same while many unverified packages are read concurrently."""

Kind = Literal["file", "link", "dir"]

_ENTRY_POINT = re.compile(r"\s*([\w.+-]+)\s*=\s*[\w.]+\s*(:\s*[\w.]+)?\s*(\[[\w, .-]*\])?\s*")
_DOCUMENTS = ("info/index.json", "info/paths.json", "info/files", "info/link.json")
_TYPES: Mapping[str, Kind] = {"hardlink": "file", "softlink": "link", "directory": "dir"}
_BROKEN = (*BAD_ARCHIVE, LayerRefused, zstandard.ZstdError, OSError, KeyError, TypeError, AttributeError)


@dataclass(slots=True)
class Contents:
    """The files that a package installs into a prefix."""

    paths: dict[str, Kind] = field(default_factory=dict)
    """Those of ``paths.json``, as the archive has them."""
    noarch: bool = False
    """Whether ``site-packages`` and ``python-scripts`` in it are placeholders for Python's own folders."""


def hold(archive: Path, package: CondaPackage) -> Contents:
    """Read a package's whole archive and return its files with their destinations.

    Raises `BuildError` that names the package for an archive that is damaged, larger than the limits here,
    or of another package; for a path that is not plain, or that leads through another one that is a link; and
    where ``paths.json`` names what is not there, or is something else.
    """
    name = package.filename
    try:
        found, documents = _read(archive, name)
        contents = _listed(documents, found, name)
        index = _json(documents, "info/index.json", name)
    except _BROKEN as error:
        raise BuildError(f"{name}: not a conda package: {str(error) or type(error).__name__}") from None
    _same_package(index, package)
    stem = f"{package.name}-{package.version}-{package.build}"
    if name not in (f"{stem}.conda", f"{stem}.tar.bz2"):
        raise BuildError(f"{name}: expected a package of the file name {stem}.conda or {stem}.tar.bz2")
    contents.noarch = index.get("noarch") == "python"
    for path, kind in contents.paths.items():
        if found.get(path, "nothing") != kind:
            raise _refused(name, f"its paths.json has {path} as a {kind}, its archive as {found.get(path)}")
    return contents


def refuse_detours(packages: Mapping[str, Contents], python: str) -> None:
    """Raise `BuildError` where a path leads through one that is a file or a link, of whichever package.

    The linker would follow it. ``python`` is the minor version, for where modules go.
    """
    owners: dict[str, str] = {}
    for name, contents in packages.items():
        for path, kind in contents.paths.items():
            if kind != "dir":
                owners.setdefault(_target(path, python, contents), name)
    for name, contents in packages.items():
        for path in contents.paths:
            for above in _above(_target(path, python, contents)):
                if above in owners:
                    raise _refused(
                        name, f"{path} leads through {above}, which is not a folder in {owners[above]}"
                    )


def read_file(archive: Path, filename: str, ending: str) -> bytes | None:
    """Return a file of a conda package, by the end of its path, or None. Raises `BuildError`."""
    try:
        with _tars(archive, filename) as tars:
            for tar in tars:
                for entry in tar:
                    if entry.kind == "file" and entry.path.endswith(ending):
                        return _whole(tar, entry)
    except _BROKEN as error:
        raise BuildError(f"{filename}: not a conda package: {str(error) or type(error).__name__}") from None
    return None


def listed_files(archive: IO[bytes], filename: str) -> Mapping[str, tuple[int, str]]:
    """Return path → size and SHA-256 of the files in ``paths.json``, from that part of the archive alone.

    Raises `BuildError` where it is damaged, or old and does not begin with it.
    """
    try:
        with ExitStack() as stack:
            plain: IO[bytes] = stack.enter_context(bz2.open(archive))
            if filename.endswith(".conda"):
                outer = stack.enter_context(open_zip(archive))
                (info,) = (e for e in outer.namelist() if e.startswith("info-") and e.endswith(".tar.zst"))
                packed = stack.enter_context(outer.open(info))
                plain = stack.enter_context(
                    zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
                )
            tar = Reader(plain)
            for entry in tar:
                if entry.size > _MOST_LISTED or (entry.path and not entry.path.startswith("info")):
                    break
                if entry.path == "info/paths.json":
                    entries = _json({entry.path: _whole(tar, entry)}, entry.path, filename)["paths"]
                    return {
                        str(each["_path"]): (int(each["size_in_bytes"]), str(each["sha256"]).lower())
                        for each in entries
                        if _TYPES.get(each["path_type"]) == "file"
                    }
            raise ValueError("its list of files is not at the start")
    except _BROKEN as error:
        raise BuildError(f"{filename}: not a conda package: {str(error) or type(error).__name__}") from None


def _read(archive: Path, name: str) -> tuple[dict[str, Kind], dict[str, bytes]]:
    found: dict[str, Kind] = {}
    documents: dict[str, bytes] = {}
    with _tars(archive, name) as tars:
        for tar in tars:
            for entry in tar:
                if not entry.path:
                    continue
                _hold_entry(entry, found, name)
                if entry.path in _DOCUMENTS and entry.kind == "file":
                    documents[entry.path] = _whole(tar, entry)
    for path in found:
        for above in _above(path):
            if found.get(above, "dir") != "dir":
                raise _refused(name, f"{path} leads through {above}, which is not a folder")
    return found, documents


def _hold_entry(entry: Entry, found: dict[str, Kind], name: str) -> None:
    path = entry.path
    if not is_plain(path):
        raise _refused(name, f"its archive has the path {path!r}")
    kind: Kind
    match entry.kind:
        case "file" | "dir" | "link":
            kind = entry.kind
        case "hardlink":
            kind = "file"
            if found.get(entry.target) != "file":
                raise _refused(name, f"{path} is a hard link to {entry.target!r}, which is not a file of it")
        case _:
            raise _refused(name, f"{path} is not a file, folder or link")
    if (kind != "dir" and path in found) or found.setdefault(path, kind) != kind:
        raise _refused(name, f"its archive has {path} more than once")


def _listed(documents: Mapping[str, bytes], found: Mapping[str, Kind], name: str) -> Contents:
    contents = Contents()
    if "info/paths.json" in documents:
        entries = _json(documents, "info/paths.json", name)["paths"]
        for entry in entries:
            path, kind = entry["_path"], _TYPES.get(entry["path_type"])
            if not isinstance(path, str) or not is_plain(path) or kind is None:
                raise _refused(name, f"its paths.json has {entry['_path']!r}")
            if path in contents.paths:
                raise _refused(name, f"its paths.json has {path} more than once")
            if entry.get("prefix_placeholder") == "":
                raise _refused(name, f"its paths.json has an empty placeholder for {path}")
            contents.paths[path] = kind
    else:  # packages of before 2016
        for path in documents["info/files"].decode().splitlines():
            contents.paths[path] = found[path]
    if "info/link.json" in documents:
        link = _json(documents, "info/link.json", name)
        for point in (link.get("noarch") or {}).get("entry_points") or []:
            if not isinstance(point, str) or not _ENTRY_POINT.fullmatch(point):
                raise _refused(name, f"its entry point {point!r} is not of the form name = module:function")
    return contents


def _same_package(index: Mapping[str, Any], package: CondaPackage) -> None:
    said = tuple(index.get(key) for key in ("name", "version", "build"))
    locked = (package.name, package.version, package.build)
    if tuple(str(word).lower() for word in said) != tuple(word.lower() for word in locked):
        raise BuildError(
            f"{package.filename}: says that it is {' '.join(map(str, said))}, and the lock has it as "
            f"{' '.join(locked)}",
            hint="`reprobuild lock --upgrade` locks it again, if you trust the channel",
        )


def _json(documents: Mapping[str, bytes], path: str, name: str) -> dict[str, Any]:
    if path not in documents:
        raise _refused(name, f"it has no {path}")
    found = json.loads(documents[path])
    if not isinstance(found, dict):
        raise _refused(name, f"its {path} is not a table")
    return found


def _whole(tar: Reader, entry: Entry) -> bytes:
    if entry.size > MOST_DOCUMENT:
        raise ValueError(f"{entry.path} has {entry.size} bytes")
    return b"".join(tar.content())


@contextmanager
def _tars(archive: Path, name: str) -> Iterator[Iterator[Reader]]:
    """Yield the tars in a package, each to be read before the next."""
    if not name.endswith(".conda"):
        with bz2.open(archive) as plain:
            yield iter([Reader(plain)])
        return

    def inner(outer: zipfile.ZipFile) -> Iterator[Reader]:
        for entry in outer.namelist():
            if entry.endswith(".tar.zst"):
                with (
                    outer.open(entry) as packed,
                    zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as plain,
                ):
                    yield Reader(plain)

    with archive.open("rb") as file, open_zip(file) as outer:
        hold_layout(file, outer)
        yield inner(outer)


def _target(path: str, python: str, contents: Contents) -> str:
    if contents.noarch and path.startswith("site-packages/"):
        return f"lib/python{python}/{path}"
    if contents.noarch and path.startswith("python-scripts/"):
        return f"bin/{path.removeprefix('python-scripts/')}"
    return path


def _above(path: str) -> Iterator[str]:
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _refused(name: str, reason: str) -> BuildError:
    return BuildError(
        f"{name}: refused: {reason}",
        hint="valid conda packages never contain this; use another build of it, or another channel",
    )
