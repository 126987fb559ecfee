"""Wheels as ZIP archives: content, damage and limits."""

from __future__ import annotations

import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reprobuild.errors import BuildError, StorageError
from reprobuild.fetch import wheel_zip
from reprobuild.fetch.wheel_zip import CHUNK, chunks, opened
from reprobuild.host.zip_directory import MOST_BYTES
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
    for place in (first + 20, 18):
        struct.pack_into("<I", data, place, second)  # the compressed size: on, over the next member
    with pytest.raises(BuildError, match="the data of 'a/one' overlaps that of another member"):
        contents(write_wheel(tmp_path, "a", "1", bytes(data)), "a")


@pytest.mark.parametrize(("name", "least"), [("MOST_BYTES", 100), ("MOST_MEMBERS", 2)])
def test_a_wheel_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, least: int
) -> None:
    monkeypatch.setattr(wheel_zip, name, least)
    with pytest.raises(BuildError, match=f"more than {least} "):
        contents(write_wheel(tmp_path, "a", "1", simple_wheel("a", "1")), "a")


def _end(data: bytes, at: int, value: int) -> bytes:
    """Write a number of 16 bits into the record at the archive's end."""
    place = data.rfind(b"PK\5\6")
    return data[: place + at] + struct.pack("<H", value) + data[place + at + 2 :]


def _hiding(data: bytes, more: bytes) -> bytes:
    start = data.find(b"PK\1\2")
    return _end(data[:start] + more + data[start:], 16, start + len(more))


def _both(data: bytes, value: int) -> bytes:
    """Write flags into the header at the first member's data and into its entry in the directory."""
    entry = data.find(b"PK\1\2")
    flags = struct.pack("<H", value)
    return data[:6] + flags + data[8 : entry + 8] + flags + data[entry + 10 :]


def _with_64(data: bytes, offset: int) -> bytes:
    """Add the records of 64 bits; ``offset`` is how far the locator is from the truth (CVE-2025-8291)."""
    place, start = data.rfind(b"PK\5\6"), data.find(b"PK\1\2")
    count = data.count(b"PK\1\2")
    end = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, place - start, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, place + offset, 1)
    return data[:place] + end + locator + data[place:]


def _second_name(data: bytes) -> bytes:
    out, name = io.BytesIO(), b"a/one"
    told = b"\1" + struct.pack("<I", zlib.crc32(name)) + b"a/two"
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo(name.decode())
        info.extra = struct.pack("<HH", 0x7075, len(told)) + told
        archive.writestr(info, b"")
    return out.getvalue()


def _streamed(data: bytes) -> bytes:
    """The same with descriptors behind the data, as a tool writes it that cannot seek."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    out = Pipe()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/one", b"1" * 99)
        archive.writestr("a/two", b"")
    return out.getvalue()


ONE_OF_TWO: Sequence[tuple[str, Callable[[bytes], bytes]]] = (
    ("7 bytes before its first member", lambda data: b"#!/sh\n\n" + data),
    ("before its first member", lambda data: data + data),
    ("something behind its directory", lambda data: data + bytes(9)),
    ("before its first member", lambda data: _end(data, 20, len(data)) + data),
    ("of no member", lambda data: _hiding(data, b"PK\3\4" + bytes(30))),
    ("another size or checksum", lambda data: data[:14] + bytes(4) + data[18:]),
    ("another size or checksum", lambda data: data[:22] + bytes(4) + data[26:]),
    ("encrypted", lambda data: data[:6] + b"\1" + data[7:]),
    ("encrypted", lambda data: _both(data, 1)),
    ("encrypted", lambda data: data[:6] + b"\x08" + data[7:]),
    ("and says 2", lambda data: _end(_end(data, 8, 2), 10, 2)),
    # The latter are the words of a Python with the fix of CVE-2025-8291, as Debian has it.
    ("its directory is in two places|Corrupt zip64", lambda data: _with_64(data, 9)),
    ("another name beside its data", _second_name),
    ("another name beside its data", lambda data: _second_name(data)[::-1].replace(b"pu", b"vu", 1)[::-1]),
)


@pytest.mark.parametrize(("words", "change"), ONE_OF_TWO, ids=[words for words, _ in ONE_OF_TWO])
def test_an_archive_that_is_one_of_two_is_refused(
    tmp_path: Path, words: str, change: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "a.whl").write_bytes(change(zip_bytes({"a/one": Item(content=b"1" * 99)})))
    with pytest.raises(BuildError, match=words), opened(tmp_path / "a.whl", "a"):
        pass


@pytest.mark.parametrize(
    "change",
    [lambda data: _end(data, 20, 5) + b"hello", lambda data: _with_64(data, 0), _streamed],
    ids=["comment", "64 bits", "descriptors"],
)
def test_rare_forms_are_read(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.whl").write_bytes(change(zip_bytes({"a/one": Item(content=b"1" * 99)})))
    with opened(tmp_path / "a.whl", "a") as archive:
        assert archive.read("a/one") == b"1" * 99


def test_a_wheel_that_is_gone_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with pytest.raises(StorageError, match=re.escape(f"{path}: No such file")), opened(path, "a"):
        pass


def test_a_directory_that_would_take_all_memory_is_not_read(tmp_path: Path) -> None:
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, *[0] * 7, 1, *[0] * 6) + b"a"
    path, number = tmp_path / "a.whl", MOST_BYTES // len(entry) + 1
    size = number * len(entry)
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, number, number, size, 0)
    end += struct.pack("<4sLQL", b"PK\6\7", 0, size, 1)
    end += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(entry * number + end)
    with pytest.raises(BuildError, match="its directory has more than"), opened(path, "a"):
        pass
