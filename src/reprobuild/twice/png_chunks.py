"""The chunks of a PNG picture, whose texts may have a date beside the pixels. Untrusted bytes.

A chunk is its length, its kind, its content and a checksum: https://www.w3.org/TR/png-3/#5Chunk-layout
"""

from __future__ import annotations

import struct
import zlib

_BEGIN = b"\x89PNG\r\n\x1a\n"
_MOST = 100_000
"""Chunks of a picture."""


def chunks(data: bytes) -> list[tuple[str, bytes]] | None:
    """Return the kind and content of each; None: it is no picture, has more behind it, or is damaged."""
    if not data.startswith(_BEGIN):
        return None
    found: list[tuple[str, bytes]] = []
    at = len(_BEGIN)
    while at < len(data) and len(found) < _MOST:
        head = data[at : at + 8]
        if len(head) < 8:
            return None
        size, kind = struct.unpack(">I4s", head)
        body, check = data[at + 8 : at + 8 + size], data[at + 8 + size : at + 12 + size]
        if len(check) < 4 or not kind.isalpha() or struct.unpack(">I", check)[0] != zlib.crc32(kind + body):
            return None
        found.append((kind.decode("ascii"), body))
        at += 12 + size
    return found if at == len(data) and found and found[-1][0] == "IEND" else None


def text_of(kind: str, body: bytes) -> str | None:
    """Return what a chunk of a text or a date says, nothing lost; None of another one."""
    if kind == "tEXt":
        return body.decode("latin-1").replace("\0", "\0 ")  # else the digits of both would be one number
    if kind == "tIME" and len(body) == 7:
        year, month, day, hour, minute, second = struct.unpack(">H5B", body)
        return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
    return None
