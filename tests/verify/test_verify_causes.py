"""Why two builds of one file differ: made by the tools that make such differences, where they are here."""

from __future__ import annotations

import gzip
import io
import marshal
import struct
import zipfile
from importlib.util import MAGIC_NUMBER

import pytest

from reprobuild.verify.causes import cause_of


def pyc(code: str, *, path: str = "/build/x.py", time: int = 1, magic: bytes = MAGIC_NUMBER) -> bytes:
    return magic + struct.pack("<III", 0, time, 3) + marshal.dumps(compile(code, path, "exec"))


def jar(*names: str, year: int = 2020, level: int = 6) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as file:
        for name in names:
            file.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), name * 100, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def ar(time: int, content: bytes = b"object") -> bytes:
    return b"!<arch>\n" + b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"a.o/", time, 0, 0, 0o644, 6) + content


ELF = b"\x7fELF\x02\x01" + bytes(20)
OBJECT = ELF + b"a\0/tmp/%b/x.c\0"
GCC = ELF + b"GCC: (Debian %b) %b\0code"


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        (pyc("x=1"), pyc("x=1", time=2), "bytecode: the same code, with another time"),
        (pyc("x=1"), pyc("x=1", magic=b"\x00\x0e\r\n"), "bytecode: compiled by another version of Python"),
        (
            pyc("x=1"),
            pyc("x=1", path="/other/x.py"),
            "bytecode: path of the build: /build/x.py → /other/x.py",
        ),
        (pyc("x=1"), pyc("x=2"), "bytecode: compiled from another source"),
        (gzip.compress(b"x", mtime=1), gzip.compress(b"x", mtime=2), "time: in its gzip header"),
        (gzip.compress(b"x", mtime=1), gzip.compress(b"y", mtime=2), "changed: "),
        (jar("a", "b"), jar("a", "b", year=2021), "time: of its members"),
        (jar("a", "b"), jar("b", "a"), "order of its members"),
        (jar("a", "b"), jar("a", "b", level=0), "compression of its members"),
        (jar("a", "b"), jar("a", "c"), "changed: "),
        (ar(1), ar(1_700_000_000), "time: of its members"),
        (ar(1), ar(2, b"OBJECT"), "changed: "),
        (
            GCC % (b"12.2.0-14", b"12.2.0"),
            GCC % (b"14.2.0-19", b"14.2.0"),
            "compiler: GCC: (Debian 12",
        ),
        (
            ELF + b"a\0/tmp/b1/x.c\0",
            ELF + b"a\0/tmp/b22/x.c\0",
            "path of the build: /tmp/b1/x.c → /tmp/b22/x.c",
        ),
        (b"a\nb\nc\n", b"c\na\nb\n", "order of its lines"),
        (b"made 2026-01-02T03:04:05Z\n", b"made 2026-01-02T03:04:06Z\n", "time: 2026-01-02T03:04:05Z → 2026"),
        (b"t=1700000000", b"t=1700000001", "time: 1700000000 → 1700000001"),
        (b"Jan  2 2026 03:04:05", b"Jan 12 2026 03:04:06", "time: Jan  2"),
        (
            b"made 2026-01-02 by a",
            b"made 2026-01-03 by b",
            "changed: 20 and 20 bytes, the first",
        ),
        (b"ab", b"abc", "changed: one continues after 2 bytes"),
        (b"", b"abc", "changed: one continues after 0 bytes"),
    ],
)
def test_the_cause_of_a_difference(first: bytes, second: bytes, cause: str) -> None:
    assert cause_of("/opt/venv/x", first, second).startswith(cause)
    assert cause_of("/opt/venv/x", second, first).partition(":")[0] == cause.partition(":")[0]


def test_reprobuild_s_own_files_are_named() -> None:
    assert "another release" in cause_of("/opt/reprobuild/selftest.py", b"a", b"b")


def test_hostile_bytes_take_no_time() -> None:
    parts = (b"/a" * 99_999, b"1" * 99_999, b"!<arch>\n" + b" " * 99_999, b"PK" + bytes(99))
    for each in (*parts, ELF + b"GCC: (" * 9_999):
        assert cause_of("/x", each, each + b"z")
