"""A wheel → the files that pip would install from it, byte for byte, without running pip.

Follows ``pip/_internal/operations/install/wheel.py`` (26.3) for ``pip install --no-deps --no-compile
--require-hashes -r``: where members go, modes, scripts, INSTALLER, REQUESTED, RECORD. A test installs the
same wheels with pip and compares. Members are inflated in chunks, straight from the archive.
"""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import importlib.metadata
import io
import posixpath
import re
import stat
import struct
import textwrap
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from isal import igzip_lib, isal_zlib

from ..errors import BuildError

CHUNK = 1 << 20

_InflateError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # its stub says an instance
_HEADER = struct.Struct("<4s22xHH")
_PYTHON_SHEBANG = re.compile(rb"#!python[^\n]*(\n|$)")


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the archive: where it goes and how."""

    info: zipfile.ZipInfo
    mode: int


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
    archive: zipfile.ZipFile, name: str, place: Place, template: str
) -> dict[str, Member | Generated]:
    """Return path in the image → what to put there, sorted by path.

    ``name`` is the package's normalised name, ``template`` what `script_template` gave for the locked pip.
    Raises `BuildError` on an archive that pip would refuse.
    """
    layout = _Layout(archive, name, place)
    files: dict[str, Member | Generated] = {}
    rows = layout.record_rows()
    wrappers = layout.wrappers(template)
    for info, destination, is_script in layout.members():
        if is_script and posixpath.basename(destination) in wrappers:
            continue
        files[destination] = Member(info, _mode(info))
        if is_script and (fixed := _fixed_script(archive.read(info), place)) is not None:
            files[destination] = Generated(fixed, _mode(info))
            rows[destination] = (layout.relative(destination), *_hash(fixed))
    made = {f"{place.prefix}/bin/{script}": Generated(text, 0o755) for script, text in wrappers.items()}
    made[f"{layout.info_dir}/INSTALLER"] = Generated(b"pip\n", 0o644)
    made[f"{layout.info_dir}/REQUESTED"] = Generated(b"", 0o644)
    files |= made
    record = f"{layout.info_dir}/RECORD"
    lines = list(rows.values())
    lines += [(layout.relative(path), *_hash(new.content)) for path, new in made.items()]
    listed = rows.keys() | made.keys()
    lines += [(layout.relative(path), "", "") for path in files if path not in listed]
    files[record] = Generated(_csv(sorted(lines)), 0o644)
    return dict(sorted(files.items()))


def chunks(file: IO[bytes], info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Inflate a member of the archive that ``file`` reads, a megabyte of it at a time.

    Raises `BuildError` when the archive is damaged, which the member's CRC tells.
    """
    file.seek(info.header_offset)
    header = file.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise BuildError(f"{info.filename}: its header in the wheel is damaged", hint=_DAMAGED)
    _, name_size, extra_size = _HEADER.unpack(header)
    file.seek(name_size + extra_size, 1)
    left, checksum = info.compress_size, 0
    inflater = isal_zlib.decompressobj(-15) if info.compress_type == zipfile.ZIP_DEFLATED else None
    while left:
        data = file.read(min(left, CHUNK))
        if not data:
            break
        left -= len(data)
        if inflater is not None:
            try:
                data = inflater.decompress(data)
            except _InflateError:
                break
        checksum = isal_zlib.crc32(data, checksum)
        yield data
    if left or checksum != info.CRC:
        raise BuildError(f"{info.filename}: its bytes in the wheel are damaged", hint=_DAMAGED)


def script_template(pip_wheel: Path) -> str:
    """Return the text of a console script as the locked pip writes it, with distlib's ``%(module)s`` fields.

    It changes with pip's version, so it is read from pip's own source.
    """
    sources = (
        ("pip/_internal/operations/install/wheel.py", "script_template"),
        ("pip/_vendor/distlib/scripts.py", "SCRIPT_TEMPLATE"),
    )
    with zipfile.ZipFile(pip_wheel) as archive:
        for source, variable in sources:
            for node in ast.walk(ast.parse(archive.read(source))):
                if isinstance(node, ast.Assign) and _assigns(node, variable):
                    return _literal(node.value)
    raise BuildError(
        f"{pip_wheel.name}: no template of its scripts was found in this pip",
        hint='ask for another version of pip, for example packages = ["pip<27"]',
    )


_DAMAGED = "`reprobuild clean --all` empties the store; the next run fetches the wheel again"


class _Layout:
    """One wheel's archive, read with the rules of pip."""

    def __init__(self, archive: zipfile.ZipFile, name: str, place: Place) -> None:
        self._archive, self._name, self._place = archive, name, place
        folders = {n.split("/")[0] for n in archive.namelist() if n.split("/")[0].endswith(".dist-info")}
        if len(folders) != 1:
            raise BuildError(f"{name}: the wheel has {len(folders)} .dist-info folders, not one")
        self._info = folders.pop()
        self.info_dir = f"{place.site}/{self._info}"

    def destination(self, path: str) -> tuple[str, bool]:
        """Return where a path of the wheel goes, and whether it is a script."""
        if path.startswith("/") or ".." in path.split("/") or "\\" in path or "\0" in path:
            raise BuildError(f"{self._name}: the wheel names a path outside its own: {path!r}")
        top, _, rest = path.partition("/")
        if not (top.endswith(".data") and rest):
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
        if key not in roots:
            raise BuildError(f"{self._name}: the wheel has a data folder of an unknown kind: {path!r}")
        return f"{roots[key]}/{inner}", key == "scripts"

    def members(self) -> Iterator[tuple[zipfile.ZipInfo, str, bool]]:
        """Give the files in pip's order of writing: a later one at the same path wins."""
        placed = [
            (info, *self.destination(info.filename)) for info in self._archive.infolist() if not info.is_dir()
        ]

        def turn(item: tuple[zipfile.ZipInfo, str, bool]) -> int:
            info, _, is_script = item
            return 2 if is_script else int(info.filename.split("/")[0].endswith(".data"))

        yield from sorted(placed, key=turn)

    def relative(self, path: str) -> str:
        """Return a path in the image as RECORD names it."""
        return posixpath.relpath(path, self._place.site)

    def record_rows(self) -> dict[str, tuple[str, str, str]]:
        """Return the wheel's own RECORD: path in the image → row, its hash and size as the wheel has them."""
        try:
            text = self._archive.read(f"{self._info}/RECORD").decode()
        except KeyError:
            raise BuildError(f"{self._name}: the wheel has no RECORD") from None
        rows: dict[str, tuple[str, str, str]] = {}
        for row in csv.reader(text.splitlines()):
            if row:
                name, digest, size = [*row, "", ""][:3]
                path = self.destination(name)[0]
                rows[path] = (self.relative(path), digest, size)
        return rows

    def wrappers(self, template: str) -> dict[str, bytes]:
        """Return file name → text of the scripts that the wheel's entry points ask for."""
        folder = zipfile.Path(self._archive, f"{self._info}/")
        points = importlib.metadata.PathDistribution(folder).entry_points
        console = {p.name: p.value for p in points if p.group == "console_scripts"}
        gui = {p.name: p.value for p in points if p.group == "gui_scripts"}
        scripts = _own_names(console, self._place.python) | gui
        return {name: self._wrapper(value, template) for name, value in scripts.items()}

    def _wrapper(self, value: str, template: str) -> bytes:
        module, _, function = value.partition("[")[0].strip().partition(":")
        module, function = module.strip(), function.strip()
        if not function:
            raise BuildError(f"{self._name}: the entry point {value!r} names no function")
        fields = {"module": module, "import_name": function.split(".")[0], "func": function}
        return (f"#!/{self._place.prefix}/bin/python\n" + template % fields).encode()


def _own_names(console: dict[str, str], python: str) -> dict[str, str]:
    """Name pip's and easy_install's scripts as pip does, whatever the wheel calls them."""
    names = dict(console)
    for own, more in (("pip", ("pip3", f"pip{python}")), ("easy_install", (f"easy_install-{python}",))):
        value = names.pop(own, None)
        if value is not None:
            names = {n: v for n, v in names.items() if not re.fullmatch(rf"{own}(-?\d+(\.\d+)?)?", n)}
            names |= dict.fromkeys((own, *more), value)
    return names


def _fixed_script(content: bytes, place: Place) -> bytes | None:
    """Return a script with the environment's interpreter in its first line; None where it needs no change."""
    if not content.startswith(b"#!python"):
        return None
    return _PYTHON_SHEBANG.sub(f"#!/{place.prefix}/bin/python\n".encode(), content, count=1)


def _mode(info: zipfile.ZipInfo) -> int:
    mode = info.external_attr >> 16
    return 0o755 if stat.S_ISREG(mode) and mode & 0o111 else 0o644


def _hash(content: bytes) -> tuple[str, str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(len(content))


def _csv(rows: list[tuple[str, str, str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _assigns(node: ast.Assign, variable: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == variable for t in node.targets) or any(
        isinstance(t, ast.Attribute) and t.attr == variable for t in node.targets
    )


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    # `textwrap.dedent("…").lstrip()` and the like, as pip has it.
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inner = _literal(node.args[0] if node.args else node.func.value)
        match node.func.attr:
            case "dedent":
                return textwrap.dedent(inner)
            case "lstrip":
                return inner.lstrip()
            case "strip":
                return inner.strip()
    raise BuildError("the locked pip builds its scripts' template in a way that is not known")
