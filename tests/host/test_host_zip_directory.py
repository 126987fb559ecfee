"""Archives with a directory that would take all memory."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from pathlib import Path

import pytest

import reprobuild
from reprobuild.host import zip_directory
from reprobuild.host.zip_directory import MOST_BYTES, hold_directory, hold_whole, open_zip


def archive(comment: bytes = b"", members: int = 3) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as written:
        for number in range(members):
            written.writestr(f"a/{number}", b"x")
        written.comment = comment
    return out.getvalue()


def with_64(data: bytes, directory: int) -> bytes:
    """Put ZIP64 records before the end record, which is the last 22 bytes."""
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 3, 3, directory, 0)
    return data[:-22] + record + struct.pack("<4sLQL", b"PK\6\7", 0, len(data) - 22, 1) + data[-22:]


def said(data: bytes, directory: int) -> bytes:
    """Change the size of the directory in the end record."""
    at = data.rfind(b"PK\5\6") + 12
    return data[:at] + struct.pack("<L", directory) + data[at + 4 :]


@pytest.mark.parametrize("comment", [b"", b"c", b"PK" * 30_000, bytes(65_535)], ids=len)
def test_an_archive_of_a_usual_size_is_read_from_its_start(comment: bytes) -> None:
    file = io.BytesIO(archive(comment))
    hold_directory(file)
    assert file.tell() == 0
    assert len(open_zip(file).infolist()) == 3


@pytest.mark.parametrize("comment", [b"", b"c", bytes(65_535)], ids=len)
def test_a_directory_that_is_too_large_is_refused(comment: bytes) -> None:
    with pytest.raises(zipfile.BadZipFile, match="its directory has more than 67,108,864 bytes"):
        hold_directory(io.BytesIO(said(archive(comment), MOST_BYTES + 1)))
    hold_directory(io.BytesIO(said(archive(comment), MOST_BYTES)))


def test_the_size_in_a_record_of_64_bits_counts_as_for_zipfile() -> None:
    with pytest.raises(zipfile.BadZipFile, match="its directory has more than"):
        hold_directory(io.BytesIO(with_64(archive(), 1 << 40)))
    hold_directory(io.BytesIO(with_64(said(archive(), 0xFFFFFFFF), 150)))
    other = with_64(archive(), 1 << 40).replace(b"PK\6\6", b"PK\6\0")  # which zipfile passes over
    hold_directory(io.BytesIO(other))


@pytest.mark.parametrize("data", [b"", b"PK\5\6", b"no archive" * 9, bytes(70_000), b"PK\5\6" + bytes(17)])
def test_what_is_no_archive_is_left_to_zipfile(data: bytes) -> None:
    hold_directory(io.BytesIO(data))


def test_a_directory_of_a_million_entries_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_directory, "MOST_BYTES", 100)
    with pytest.raises(zipfile.BadZipFile, match="its directory has more than"):
        open_zip(io.BytesIO(archive(members=3)))


def test_no_archive_is_opened_in_another_way() -> None:
    """But one that is written, in the sandbox, or on a server, of which few bytes are read."""
    source = Path(reprobuild.__file__).parent
    found = [
        f"{file.relative_to(source)}: {line.strip()}"
        for file in sorted(source.rglob("*.py"))
        for line in file.read_text().splitlines()
        if re.search(r"\bZipFile\(", line) and '"w"' not in line
    ]
    assert found == [
        "host/zip_directory.py: return zipfile.ZipFile(file)",
        "programs/build_wheel.py: with zipfile.ZipFile(archive) as opened:",
        "resolve/wheel_metadata.py: with zipfile.ZipFile(_RangedFile(url, session)) as wheel:",
    ]


def test_bytes_of_no_member_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "it.zip"
    whole = archive()
    with open_zip(io.BytesIO(whole)) as opened:
        hold_whole(opened)
        second = opened.infolist()[1].header_offset
    for at in (0, second, len(whole)):
        path.write_bytes(whole[:at] + whole[:40] + whole[at:])
        with path.open("rb") as file, pytest.raises(zipfile.BadZipFile), open_zip(file) as opened:
            hold_whole(opened)
