"""A real browser: what it makes of a page, and what it shows."""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections import Counter
from pathlib import Path

from conftest import needs

_QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
_CLOSED = ["--disable-background-networking", "--disable-component-update", "--disable-quic"]


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a page in Chromium without a network; return what it wrote."""
    needs("chromium")
    profile = page.parent / "profile"
    argv = [
        "unshare",
        "--net",
        "chromium",
        *_QUIET,
        *_CLOSED,
        f"--user-data-dir={profile}",
        *options,
        page.as_uri(),
    ]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)


def dom(page: Path) -> str:
    """Return the page as the browser has understood it."""
    return browse(page, "--dump-dom").stdout


def colours(page: Path, picture: Path) -> Counter[tuple[int, int, int]]:
    """Take a picture of the page; return how many of its pixels have which colour."""
    browse(page, f"--screenshot={picture}", "--window-size=1100,1600", "--hide-scrollbars")
    width, lines = _lines(picture.read_bytes())
    return Counter(line[i : i + 3] for line in lines for i in range(0, 3 * width, 3))  # type: ignore[misc]


def _lines(png: bytes) -> tuple[int, list[tuple[int, ...]]]:
    """Return the width and the lines of a PNG of 8 bits a colour, without its transparency."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8
    size = {2: 3, 6: 4}[kind]
    packed, at = b"", 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    raw, lines, above = zlib.decompress(packed), [], bytes(width * size)
    for row in range(height):
        start = row * (width * size + 1)
        above = _unfiltered(raw[start], raw[start + 1 : start + 1 + width * size], above, size)
        lines.append(tuple(byte for i, byte in enumerate(above) if i % size < 3))
    return width, lines


def _unfiltered(kind: int, line: bytes, above: bytes, size: int) -> bytes:
    out = bytearray(line)
    for i, byte in enumerate(line):
        left, up = (out[i - size] if i >= size else 0), above[i]
        corner = above[i - size] if i >= size else 0
        nearest = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
        out[i] = (byte + (0, left, up, (left + up) // 2, nearest)[kind]) & 0xFF
    return bytes(out)
