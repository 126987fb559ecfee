"""Files that pip would install from a wheel, byte for byte, without running pip.

Follows ``pip/_internal/operations/install/wheel.py`` (26.3) for ``pip install --no-deps --no-compile
--require-hashes -r``: where members go, modes, scripts, INSTALLER, REQUESTED, RECORD. A test installs the
same wheels with pip and compares."""

from __future__ import annotations

import base64
import csv
import email
import email.message
import hashlib
import importlib.metadata
import io
import posixpath
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import BuildError
from ..fetch.plain_path import is_plain
from .allowed_paths import refuse_own_names
from .entry_points import fixed_script, is_wrapper, own_names, wrapper

_MOST_TEXT = 64 << 20
"""Bytes of a file of ``.dist-info``; torch's RECORD has two million."""
_SCRIPT_NAME = re.compile(r"\w[\w.+-]*")
_INTERPRETER = re.compile(
    r"(pyvenv\.cfg|pybuilddir\.txt|lib64|lib/python3[0-9]+\.zip"
    r"|bin/(python[0-9.]*(\._pth)?|pyvenv\.cfg|pybuilddir\.txt|Modules/Setup\.local|lib(64)?/python[^/]*)"
    r"|lib/python3\.[0-9]+/(?!(site|dist)-packages/)[^/]+)(/.*)?"
)
"""Below the environment: what CPython's ``Modules/getpath.py`` looks for, and conda's standard library."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the archive: its destination, and how it is installed."""

    info: zipfile.ZipInfo
    mode: int
    recorded: str = ""
    """Its SHA-256 in the wheel's RECORD, in hex; empty if missing."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A file that installing makes, or changes."""

    content: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where an environment keeps things, as paths in the image without a leading slash."""

    prefix: str
    """``opt/venv``"""
    python: str
    """``3.11``"""

    @property
    def site(self) -> str:
        """``opt/venv/lib/python3.11/site-packages``"""
        return f"{self.prefix}/lib/python{self.python}/site-packages"


def installed_files(
    archive: zipfile.ZipFile, name: str, version: str, place: Place, template: str
) -> dict[str, Member | Generated]:
    """Return path in the image → what to put there, sorted by path.

    ``name`` is the package's normalised name, ``template`` what `script_template` gave for the locked pip.
    Raises `BuildError` on an archive that pip would refuse, or that uses a name of reprobuild's own.
    """
    layout = _Layout(archive, name, place)
    layout.refuse_another(version)
    console, gui = layout.entry_points()
    record = list(layout.record_rows())
    recorded = {path: _sha256(digest) for path, digest, _ in record}
    files: dict[str, Member | Generated] = {}
    went: dict[str, str] = {}
    changed: dict[str, tuple[str, str]] = {}
    for info, destination, is_script in layout.members():
        if is_script and is_wrapper(posixpath.basename(destination), console.keys() | gui.keys()):
            continue
        files[layout.real(destination)] = Member(info, _mode(info), recorded.get(info.filename, ""))
        if is_script and (fixed := fixed_script(archive, info, place.prefix)) is not None:
            files[destination] = Generated(fixed, _mode(info))
            changed[destination] = _hash(fixed)
        went[info.filename] = destination
    made = {
        f"{place.prefix}/bin/{script}": Generated(wrapper(name, value, template, place.prefix), 0o755)
        for script, value in (own_names(console, place.python) | gui).items()
    }
    made[f"{layout.info_dir}/INSTALLER"] = Generated(b"pip\n", 0o644)
    made[f"{layout.info_dir}/REQUESTED"] = Generated(b"", 0o644)
    files |= made
    rows: list[tuple[str, str, str]] = []
    for path, digest, size in record:
        # Of a path named twice, the second row stays as the wheel has it; so pip does.
        destination = went.pop(path, "")
        hashed = changed.get(destination, (digest, size))
        rows.append((layout.relative(destination) if destination else path, *hashed))
    rows += [(layout.relative(path), *_hash(new.content)) for path, new in made.items()]
    rows += [(layout.relative(path), "", "") for path in went.values()]
    files[f"{layout.info_dir}/RECORD"] = Generated(_csv(sorted(rows)), 0o644)
    refuse_own_names(files, name)
    _refuse_interpreter(files, name, place)
    return dict(sorted(files.items()))


def _refuse_interpreter(files: Iterable[str], name: str, place: Place) -> None:
    """Refuse a wheel with a file of the environment's interpreter, or one that it reads before `site`."""
    for path in files:
        if path.startswith(f"{place.prefix}/") and _INTERPRETER.fullmatch(path, len(place.prefix) + 1):
            raise BuildError(
                f"{name}: has the file {'/' + path!a}, which is the environment's own interpreter, of its "
                "library, or read at its start",
                hint="use another version of it; this one would run in place of the locked Python",
            )


class _Layout:
    """One wheel's archive, read with the rules of pip."""

    def __init__(self, archive: zipfile.ZipFile, name: str, place: Place) -> None:
        self._archive, self._name, self._place = archive, name, place
        folders = {n.split("/")[0] for n in archive.namelist() if n.split("/")[0].endswith(".dist-info")}
        if len(folders) != 1:
            raise BuildError(f"{name}: the wheel has {len(folders)} .dist-info folders, not one")
        self._info = folders.pop()
        self.info_dir = f"{place.site}/{self._info}"

    def refuse_another(self, version: str) -> None:
        """Refuse a wheel of another package or version than locked, or of an unknown wheel version.

        As pip does (``_internal/utils/wheel.py``, ``_internal/operations/prepare.py``).
        """
        if not canonicalize_name(self._info).startswith(self._name):
            raise BuildError(f"{self._name}: the wheel has the folder {self._info!r}, of another package")
        wheel = self._headers("WHEEL")["Wheel-Version"] or "none"
        if not re.fullmatch(r"\s*[01](\.\d+)*\s*", wheel, re.ASCII):
            raise BuildError(f"{self._name}: the wheel has the Wheel-Version {wheel!r}; only 1 is known")
        metadata = self._headers("METADATA")
        said, of = str(metadata["Name"] or ""), str(metadata["Version"] or "")
        try:
            same = canonicalize_name(said) == self._name and Version(of) == Version(version)
        except InvalidVersion:
            same = False
        if not same:
            raise BuildError(
                f"{self._name}: the wheel says that it is {said!r} {of!r}, and the lock has it as "
                f"{self._name} {version}",
                hint="`reprobuild lock --upgrade` locks it again, if you trust the index",
            )

    def _headers(self, file: str) -> email.message.Message:
        text = self._text(file)
        if text is None:
            raise BuildError(f"{self._name}: the wheel has no {file}")
        return email.message_from_string(text)

    def _text(self, file: str) -> str | None:
        try:
            info = self._archive.getinfo(f"{self._info}/{file}")
        except KeyError:
            return None
        if info.file_size > _MOST_TEXT:
            raise BuildError(f"{self._name}: the wheel's {file} has more than {_MOST_TEXT} bytes")
        return self._archive.read(info).decode()

    def destination(self, path: str) -> tuple[str, bool]:
        """Return where a path of the wheel goes, and whether it is a script."""
        if not is_plain(path):
            raise BuildError(f"{self._name}: the wheel has a file whose path is refused: {path!r}")
        top, _, rest = path.partition("/")
        if not top.endswith(".data"):
            return f"{self._place.site}/{path}", False
        key, _, inner = rest.partition("/")
        prefix = self._place.prefix
        roots = {
            "purelib": self._place.site,
            "platlib": self._place.site,
            "data": prefix,
            "scripts": f"{prefix}/bin",
            "headers": f"{prefix}/include/site/python{self._place.python}/{self._name}",
        }
        if key not in roots or not inner:
            raise BuildError(f"{self._name}: the wheel has a data folder of an unknown kind: {path!r}")
        return f"{roots[key]}/{inner}", key == "scripts"

    def members(self) -> Iterator[tuple[zipfile.ZipInfo, str, bool]]:
        """Yield the files in pip's order of writing: a later one at the same path wins."""
        placed = [
            (info, *self.destination(info.filename)) for info in self._archive.infolist() if not info.is_dir()
        ]

        def turn(item: tuple[zipfile.ZipInfo, str, bool]) -> int:
            info, _, is_script = item
            return 2 if is_script else int(info.filename.split("/")[0].endswith(".data"))

        yield from sorted(placed, key=turn)

    def real(self, path: str) -> str:
        """Return where a path leads, since an environment's ``lib64`` is a link to ``lib``."""
        link = f"{self._place.prefix}/lib64/"
        return f"{self._place.prefix}/lib/{path.removeprefix(link)}" if path.startswith(link) else path

    def relative(self, path: str) -> str:
        """Return a path in the image as RECORD names it."""
        return posixpath.relpath(path, self._place.site)

    def record_rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the rows of the wheel's own RECORD: path in the wheel, hash and size."""
        text = self._text("RECORD")
        if text is None:
            raise BuildError(f"{self._name}: the wheel has no RECORD")
        for row in csv.reader(text.splitlines()):
            if row:
                name, digest, size = [*row, "", ""][:3]
                yield name, digest, size

    def entry_points(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return name → value of the console and of the GUI scripts; of two with one name the last."""
        self._text("entry_points.txt")  # for its size
        folder = zipfile.Path(self._archive, f"{self._info}/")
        try:
            points = importlib.metadata.PathDistribution(folder).entry_points
        except (TypeError, ValueError):  # a line without "="; bytes that are no text
            raise BuildError(f"{self._name}: the wheel's entry_points.txt cannot be read") from None
        for point in points:
            if point.group.endswith("_scripts") and not (
                _SCRIPT_NAME.fullmatch(point.name) and is_plain(point.name)
            ):
                raise BuildError(
                    f"{self._name}: the wheel has an entry point of a refused name: {point.name!r}"
                )
        console = {p.name: p.value for p in points if p.group == "console_scripts"}
        gui = {p.name: p.value for p in points if p.group == "gui_scripts"}
        return console, gui


def _mode(info: zipfile.ZipInfo) -> int:
    mode = info.external_attr >> 16
    return 0o755 if stat.S_ISREG(mode) and mode & 0o111 else 0o644


def _hash(content: bytes) -> tuple[str, str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(len(content))


def _sha256(digest: str) -> str:
    """Return a RECORD's SHA-256 in hex; empty if missing or of another kind."""
    kind, _, text = digest.partition("=")
    try:
        return base64.urlsafe_b64decode(text + "==").hex() if kind == "sha256" else ""
    except ValueError:
        return ""


def _csv(rows: list[tuple[str, str, str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
