"""Inspect a source archive before it is unpacked: its members and its metadata."""

from __future__ import annotations

import bz2
import gzip
import lzma
import posixpath
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from ..errors import BuildError
from ..host.zip_directory import open_zip
from ..oci.tar_fields import LayerRefused
from ..oci.tar_reader import Readable, Reader
from ..request.table import Table, refused_as
from ..request.toml_reader import load_toml

MOST_BYTES = 8 << 30
"""Of all members of an archive, unpacked; large ones, with whole libraries in them, have 0.5 GB."""
MOST_MEMBERS = 500_000
_LARGEST = 8 << 20
"""Bytes of a file that is read here: pyproject.toml, PKG-INFO or setup.py."""

_UNREADABLE = (
    *(LayerRefused, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, OverflowError),
    *(RuntimeError, OSError, NotImplementedError),
)
"""What the readers of archives raise on bytes that make no sense."""

DEFAULT_BACKEND = "setuptools.build_meta:__legacy__"
DEFAULT_REQUIRES = ("setuptools>=40.8.0",)
"""Where an archive names none (PEP 517, PEP 518)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildSystem:
    """The table ``build-system`` of a source archive (PEP 518)."""

    requires: tuple[str, ...] = DEFAULT_REQUIRES
    backend: str = DEFAULT_BACKEND
    backend_path: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """Metadata of an archive's project, found without running it; None for a missing file."""

    pyproject: bytes | None
    pkg_info: bytes | None
    setup_py: bytes | None = None
    modules: frozenset[str] = frozenset()
    """The names of modules beside them."""


def told(file: Path, filename: str, *, subdirectory: str = "") -> Told:
    """Return the metadata files of an archive. Raises `BuildError` for one that must not be unpacked.

    That is one with members outside its one folder, with links that leave it, or that unpacks to more than
    `MOST_BYTES`.
    """
    try:
        found, modules = _read(file, filename, subdirectory, ("pyproject.toml", "PKG-INFO", "setup.py"))
    except _UNREADABLE as error:
        reason = str(error) or type(error).__name__
        raise BuildError(
            f"{filename}: the source archive cannot be used: {reason}",
            hint="ask for another version of the package, or report it to its maintainers",
        ) from None
    return Told(
        pyproject=found.get("pyproject.toml"),
        pkg_info=found.get("PKG-INFO"),
        setup_py=found.get("setup.py"),
        modules=modules,
    )


def build_system(file: Path, filename: str, *, subdirectory: str = "") -> BuildSystem:
    """Return the build settings of an archive. Raises `BuildError` for a broken table, or as `told`."""
    text = told(file, filename, subdirectory=subdirectory).pyproject
    if text is None:
        return BuildSystem()
    where = f"{filename}: pyproject.toml"
    try:
        table = load_toml(text.decode("utf-8")).get("build-system")
        if table is None:
            return BuildSystem()
    except ValueError as error:
        raise BuildError(f"{where}: not valid TOML: {error}") from None
    with refused_as(BuildError, where):
        own = Table(table, "build-system")
        return BuildSystem(
            requires=tuple(own.texts("requires", default=())),
            backend=own.value("build-backend", str, DEFAULT_BACKEND),
            backend_path=tuple(own.texts("backend-path", default=())),
        )


def _read(
    file: Path, filename: str, subdirectory: str, wanted: Sequence[str]
) -> tuple[dict[str, bytes], frozenset[str]]:
    tops: set[str] = set()
    beside: set[str] = set()
    found: dict[str, bytes] = {}
    paths = {posixpath.join(subdirectory, name): name for name in wanted}
    with _members(file, filename) as members:
        for path, content in members:
            top, _, rest = path.partition("/")
            tops.add(top)
            if not subdirectory or rest.startswith(f"{subdirectory}/"):
                beside.add(rest[len(subdirectory) :].strip("/").partition("/")[0].removesuffix(".py"))
            if content is not None and (name := paths.get(rest)) is not None:
                found[name] = content.read(_LARGEST + 1)
                if len(found[name]) > _LARGEST:
                    raise ValueError(f"its {name} is too large")
    if len(tops) != 1:
        raise ValueError(f"expected one folder at its top, found {len(tops)}")
    return found, frozenset(beside)


@contextmanager
def _members(file: Path, filename: str) -> Iterator[Iterator[tuple[str, Any]]]:
    if filename.endswith(".zip"):
        with file.open("rb") as plain, open_zip(plain) as archive:
            yield _of_zip(archive)
        return
    with file.open("rb") as plain:
        yield _of_tar(Reader(_inflated(plain)))


def _inflated(file: BufferedReader) -> Readable:
    start = file.peek(6)[:6]
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if start == b"\xfd7zXZ\0" else file


class _Content:
    """The content of a reader's latest entry."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, most: int) -> bytes:
        """Return at most so many bytes, from its start."""
        found = b""
        for chunk in self._reader.content():
            found += chunk
            if len(found) >= most:
                break
        return found[:most]


def _of_zip(archive: zipfile.ZipFile) -> Iterator[tuple[str, Any]]:
    infos = archive.infolist()
    if len(infos) > MOST_MEMBERS:
        raise ValueError(f"it has more than {MOST_MEMBERS} members")
    if sum(info.file_size for info in infos) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES} bytes")
    for info in infos:
        name = _inside(info.filename)
        if info.is_dir():
            continue
        with archive.open(info) as content:
            yield name, content


def _of_tar(reader: Reader) -> Iterator[tuple[str, _Content | None]]:
    total, files = 0, set[str]()
    for number, entry in enumerate(reader):
        if number >= MOST_MEMBERS:
            raise ValueError(f"it has more than {MOST_MEMBERS} members")
        if entry.kind == "dir":
            continue
        if entry.kind == "link":
            _inside(posixpath.join(posixpath.dirname(entry.path), entry.target), entry.path)
        elif entry.kind not in ("file", "hardlink"):
            raise ValueError(f"{entry.path!r} is neither a file, a folder nor a link")
        elif entry.kind == "hardlink" and entry.target not in files:
            raise ValueError(f"the link {entry.path!r} leads outside it, or to no file before it")
        files.add(entry.path)
        total += entry.size
        if total > MOST_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_BYTES} bytes")
        yield entry.path, _Content(reader) if entry.kind == "file" else None


def _inside(name: str, link: str = "") -> str:
    """Return the normalised path of a member; ValueError where it is not below the archive's folder."""
    path = posixpath.normpath(name)
    if path.startswith("/") or path.split("/")[0] == ".." or "\0" in path:
        what = f"the link {link!r} leads outside it" if link else f"{name!r} is a path outside it"
        raise ValueError(what)
    return path
