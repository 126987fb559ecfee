"""The chunks of PNG pictures, as Pillow writes them."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.twice.evidence import Evidence
from reprobuild.twice.file_values import value_lines
from reprobuild.twice.png_chunks import chunks, text_of


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def picture(
    text: bytes = b"Creation Time\x00Sun, 29 Nov 2026 16:40:01", pixels: bytes = b"\x00\x01"
) -> bytes:
    parts = (
        chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        chunk(b"tEXt", text),
        chunk(b"tIME", struct.pack(">H5B", 2026, 11, 29, 16, 40, 1)),
        chunk(b"IDAT", zlib.compress(pixels)),
        chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_texts_and_dates_are_lines_beside_the_pixels() -> None:
    lines = value_lines(picture(), Evidence())
    other = value_lines(picture(b"Creation Time\x00Sun, 29 Nov 2026 17:40:01"), Evidence())
    assert lines is not None
    assert other is not None
    assert [a for a, b in zip(lines, other, strict=True) if a != b] == [
        "tEXt text 'Creation Time\\x00 Sun, 29 Nov 2026 16:40:01'"
    ]
    assert "tIME text '2026-11-29 16:40:01'" in lines
    assert value_lines(picture(pixels=b"\x00\x02"), Evidence()) != lines


@pytest.mark.parametrize(
    "data",
    [b"", picture()[8:], picture()[:-1], picture() + b"x", picture().replace(b"29 Nov", b"28 Nov")],
    ids=["empty", "no signature", "cut", "more behind it", "a checksum that is wrong"],
)
def test_what_is_no_whole_picture_counts_by_its_bytes(data: bytes) -> None:
    assert chunks(data) is None


def test_a_date_of_another_length_is_none() -> None:
    assert text_of("tIME", b"\x07") is None
    assert text_of("IDAT", b"abc") is None


@given(st.integers(8, len(picture()) - 1), st.integers(1, 255))
def test_a_byte_that_is_another_one_is_seen(at: int, change: int) -> None:
    data = bytearray(picture())
    data[at] ^= change
    assert value_lines(bytes(data), Evidence()) != value_lines(picture(), Evidence())
