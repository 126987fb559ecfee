"""Cause of a difference between the contents of one file in two builds, as far as the bytes show it. Pure.

The kinds are those that https://reproducible-builds.org/docs/ lists: time, order, build path, compiler.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence

from ..host.zip_directory import open_zip
from ..request.image_layout import OWN_FOLDER

_ELF, _ARCHIVE, _GZIP, _ZIP = b"\x7fELF", b"!<arch>\n", b"\x1f\x8b", b"PK"
_PYC_HEADER = 16
"""Bytes of a ``.pyc`` before its code: magic number, flags, time and size of the source, or its hash."""

_COMPILER = re.compile(rb"(?:GCC: \([^)\0]{1,80}\)|clang version|rustc version|GNU C\+?\+?\d*) \d[\w.]{0,20}")
_TIME = re.compile(
    rb"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    rb"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]?\d"
    rb"(?: \d\d:\d\d:\d\d)?(?: [A-Z]{3,4})?(?: \d{4})?"
    rb"|\b\d\d:\d\d:\d\d\b"
    rb"|\b1[4-9]\d{8}(?:\.\d+)?\b"
)
_PATH = re.compile(rb"(?<![\w./-])/(?:[\w.+@~-]+/)+[\w.+@~-]*")


def cause_of(path: str, first: bytes, second: bytes) -> str:
    """Return why two contents of a file differ: the first kind of difference that explains all of it."""
    if path.startswith(f"{OWN_FOLDER}/"):
        return "a file of reprobuild's own: changed, or of another release"
    for explain in (_bytecode, _gzip, _zip, _archive, _compiler, _order):
        if found := explain(first, second):
            return found
    if found := _same_but_for(_TIME, first, second):
        return f"time: {found}"
    if found := _same_but_for(_PATH, first, second):
        return f"path of the build: {found}"
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if at is None:
        return f"changed: one continues after {min(len(first), len(second)):,} bytes"
    return f"changed: {len(first):,} and {len(second):,} bytes, the first difference at byte {at:,}"


def _bytecode(first: bytes, second: bytes) -> str:
    if not (_is_bytecode(first) and _is_bytecode(second)):
        return ""
    if first[:4] != second[:4]:
        return "bytecode: compiled by another version of Python"
    if first[_PYC_HEADER:] == second[_PYC_HEADER:]:
        return "bytecode: the same code, with another time, size or hash of its source"
    if found := _same_but_for(_PATH, first[_PYC_HEADER:], second[_PYC_HEADER:]):
        return f"bytecode: path of the build: {found}"
    return "bytecode: compiled from another source"


def _is_bytecode(data: bytes) -> bool:
    return len(data) > _PYC_HEADER and data[2:4] == b"\r\n" and data[5:8] == bytes(3)


def _gzip(first: bytes, second: bytes) -> str:
    """The header has a time in bytes 4 to 7 (RFC 1952)."""
    if first[:2] == second[:2] == _GZIP and first[:4] + first[8:] == second[:4] + second[8:]:
        return "time: in its gzip header"
    return ""


def _zip(first: bytes, second: bytes) -> str:
    if not first[:2] == second[:2] == _ZIP:
        return ""
    try:
        one, other = (open_zip(io.BytesIO(each)).infolist() for each in (first, second))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return ""

    def members(entries: Sequence[zipfile.ZipInfo]) -> list[tuple[str, int, int]]:
        return [(entry.filename, entry.CRC, entry.file_size) for entry in entries]

    if members(one) == members(other):
        times = [entry.date_time for entry in one] != [entry.date_time for entry in other]
        return "time: of its members" if times else "compression of its members"
    return "order of its members" if sorted(members(one)) == sorted(members(other)) else ""


def _archive(first: bytes, second: bytes) -> str:
    """Each member's header of an ``ar`` file has a time (ar(5)): twelve digits behind a name of 16."""
    header = re.compile(rb"([^\n]{16})[\d ]{12}(?=[\d ]{12}[0-7 ]{8}[\d ]{10}`\n)")
    if not first.startswith(_ARCHIVE) or not second.startswith(_ARCHIVE):
        return ""
    return "time: of its members" if header.sub(rb"\1", first) == header.sub(rb"\1", second) else ""


def _compiler(first: bytes, second: bytes) -> str:
    if not first[:4] == second[:4] == _ELF:
        return ""
    one, other = (sorted(set(_COMPILER.findall(each))) for each in (first, second))
    return f"compiler: {_shown(b', '.join(one))} → {_shown(b', '.join(other))}" if one != other else ""


def _order(first: bytes, second: bytes) -> str:
    if b"\0" in first or first.count(b"\n") < 2:
        return ""
    return "order of its lines" if sorted(first.split(b"\n")) == sorted(second.split(b"\n")) else ""


def _same_but_for(pattern: re.Pattern[bytes], first: bytes, second: bytes) -> str:
    """Return the first differing match of a pattern if nothing else differs; otherwise nothing."""
    if pattern.sub(b"\0", first) != pattern.sub(b"\0", second):
        return ""
    pairs = zip(pattern.findall(first), pattern.findall(second), strict=True)
    return next((f"{_shown(one)} → {_shown(other)}" for one, other in pairs if one != other), "")


def _shown(data: bytes) -> str:
    return data[:120].decode("utf-8", "backslashreplace") or "none"
