"""Wheels as ZIP archives: content, damage and limits."""

from __future__ import annotations

import io
import os
import re
import struct
import zipfile
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.fetch import wheel_zip
from reprobuild.fetch.wheel_zip import CHUNK, chunks
from support.wheel_contents import contents
from support.wheels import Item, simple_wheel, wheel_bytes, write_wheel, zip_bytes


@pytest.mark.parametrize(
    "data",
    [b"", b"no zip at all" * 9, simple_wheel("a")[:-30], simple_wheel("a")[:200], b"PK\5\6" + bytes(18)],
    ids=["empty", "text", "cut at the end", "cut early", "no member"],
)
def test_what_is_no_wheel_is_a_build_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BuildError, match=r"^a: "):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


def member(data: bytes, name: str = "a/x.bin") -> tuple[io.BytesIO, zipfile.ZipInfo]:
    return io.BytesIO(data), zipfile.ZipFile(io.BytesIO(data)).getinfo(name)


@pytest.mark.parametrize("compress", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("content", [b"", b"x", bytes(5 * CHUNK + 3), os.urandom(2 * CHUNK)], ids=len)
def test_chunks_give_a_member_s_bytes(content: bytes, compress: int) -> None:
    file, info = member(zip_bytes({"a/x.bin": Item(content=content, compress=compress)}))
    found = list(chunks(file, info))
    assert b"".join(found) == content
    assert all(len(chunk) <= 4 * CHUNK for chunk in found)


@pytest.mark.parametrize("compress", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("where", [0, 14, 60, 300, 1000])
def test_chunks_detect_damage(compress: int, where: int) -> None:
    content = bytes(range(256)) * 4 + os.urandom(1024)
    data = bytearray(zip_bytes({"a/x.bin": Item(content=content, compress=compress)}))
    file, info = member(bytes(data))
    start = 0 if where == 0 else 30 + len("a/x.bin") + where
    data[start] ^= 0x55
    with pytest.raises(BuildError, match="damaged"):
        list(chunks(io.BytesIO(data), info))
    with pytest.raises(BuildError, match="damaged"):
        list(chunks(io.BytesIO(file.getvalue()[: start + 10]), info))


@pytest.mark.parametrize("lie", [-1, 1, 1 << 30])
def test_a_member_of_another_size_than_it_says_is_refused(lie: int) -> None:
    file, info = member(zip_bytes({"a/x.bin": Item(content=bytes(1000))}))
    info.file_size += lie
    with pytest.raises(BuildError, match="damaged"):
        list(chunks(file, info))


def test_a_bomb_ends_at_the_size_it_says() -> None:
    file, info = member(zip_bytes({"a/x.bin": Item(content=bytes(48 << 20))}))
    info.file_size = 1000
    given: list[bytes] = []
    with pytest.raises(BuildError, match="damaged"):
        given.extend(chunks(file, info))
    assert sum(map(len, given)) <= 1000


@pytest.mark.parametrize("compress", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_rare_compression_is_refused_by_name(compress: int) -> None:
    file, info = member(zip_bytes({"a/x.bin": Item(content=b"x" * 99, compress=compress)}))
    with pytest.raises(BuildError, match="compresses"):
        list(chunks(file, info))


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    data = bytearray(simple_wheel("a"))
    central = data.index(b"PK\1\2", data.index(b"RECORD"))
    for start in [i for i in range(central, len(data)) if data[i : i + 4] == b"PK\1\2"]:
        (flags,) = struct.unpack_from("<H", data, start + 8)
        struct.pack_into("<H", data, start + 8, flags | 1)
    with pytest.raises(BuildError, match=r"^a: its wheel cannot be read"):
        contents(write_wheel(tmp_path, "a", "1", bytes(data)), "a")


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    data = bytearray(wheel_bytes("a", "1", {"a/one.py": "X = 1\n", "a/two.py": "X = 2\n"}))
    with pytest.raises(BuildError, match=r"a: its wheel cannot be read: it has 'a/one\.py' more than once"):
        contents(write_wheel(tmp_path, "a", "1", bytes(data.replace(b"a/two.py", b"a/one.py"))), "a")


def test_a_member_with_two_names_is_refused(tmp_path: Path) -> None:
    """A reader of the directory sees one, a reader of the stream the other."""
    data = wheel_bytes("a", "1", {"a/one.py": "X = 1\n"}).replace(b"a/one.py", b"a/two.py", 1)
    with pytest.raises(BuildError, match=r"'a/one\.py' has another name beside its data"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


def test_members_that_share_their_data_are_refused(tmp_path: Path) -> None:
    """So ten megabytes unpack to 281 terabytes."""
    data = bytearray(zip_bytes({"a/one": Item(content=bytes(1 << 20)), "a/two": Item(content=b"x")}))
    first, second = (m.start() for m in re.finditer(b"PK\x01\x02", bytes(data)))
    struct.pack_into("<I", data, first + 20, second)  # the compressed size: on, over the next member
    with pytest.raises(BuildError, match="the data of 'a/one' overlaps that of another member"):
        contents(write_wheel(tmp_path, "a", "1", bytes(data)), "a")


@pytest.mark.parametrize(("name", "least"), [("MOST_BYTES", 100), ("MOST_MEMBERS", 2)])
def test_a_wheel_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, least: int
) -> None:
    monkeypatch.setattr(wheel_zip, name, least)
    with pytest.raises(BuildError, match=f"more than {least} "):
        contents(write_wheel(tmp_path, "a", "1", simple_wheel("a", "1")), "a")
