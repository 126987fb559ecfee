"""Shared objects with nothing in them but the names of the libraries that they need."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def elf(needed: Sequence[str], *, soname: str = "", text: int = 5) -> bytes:
    """Return a 64-bit little-endian ELF file with a dynamic section; ``text`` tags where its strings are."""
    strings, places = b"\0", []
    for tag, name in [*((1, name) for name in needed), *([(14, soname)] if soname else [])]:
        places.append((tag, len(strings)))
        strings += name.encode() + b"\0"
    start = 64 + 2 * 56
    count = len(places) + 2
    base = 0x400000  # where it is loaded to: addresses in the file are not offsets in it
    dynamic = b"".join(
        struct.pack("<QQ", *pair) for pair in [*places, (text, base + start + count * 16), (0, 0)]
    )
    size = start + len(dynamic) + len(strings)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, base, base, size, size, 4096)
    place = struct.pack("<IIQQQQQQ", 2, 4, start, base + start, base + start, len(dynamic), len(dynamic), 8)
    return head + load + place + dynamic + strings
