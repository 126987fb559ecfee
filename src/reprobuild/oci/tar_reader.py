"""Read and validate the entries of a layer's tar. The input is untrusted.

Not the standard library's tarfile, which takes a damaged header for the end of the archive, reads headers of
any length into memory and through expressions of quadratic time (CVE-2024-6232), and lets a global header
rename every entry: two tools then see two images. What tools read differently is refused here.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import zstandard

from .tar_fields import (
    MOST_ID,
    MOST_PATH,
    LayerRefused,
    attributes,
    clamped,
    clean_path,
    default_device,
    long_name,
    number,
    pax_number,
    pax_records,
    pax_time,
    short_name,
    text,
)

MOST_BYTES = 32 << 30
"""Bytes of a layer's tar: four times the largest layer that reprobuild itself makes."""

MOST_ENTRIES = 2_000_000
"""Entries of a layer."""

MOST_HEADER = 1 << 20
"""Bytes of the PAX header of an entry, or of its GNU long name; extended attributes take the most of them."""

Kind = Literal["file", "dir", "link", "hardlink", "fifo", "device"]

_BLOCK, _CHUNK = 512, 1 << 20
_ZEROS = bytes(_BLOCK)
_KINDS: Mapping[bytes, Kind] = {
    **dict.fromkeys((b"\0", b"0", b"7"), "file"),
    b"1": "hardlink",
    b"2": "link",
    b"3": "device",
    b"4": "device",
    b"5": "dir",
    b"6": "fifo",
}


class Readable(Protocol):
    """What gives bytes, one after the other."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry of a layer."""

    path: str
    """Relative, without ``.`` and ``..``; empty for the root. Bytes that are not UTF-8 are surrogates."""
    kind: Kind
    mode: int
    """The twelve bits of rights."""
    uid: int
    gid: int
    mtime: int
    """Whole seconds, from 0 to below 2^33."""
    size: int
    """Bytes of a file's content, else 0."""
    target: str
    """Target of a link, verbatim; of a hard link as a path like `path`; else empty."""
    device: str
    """Device numbers, such as ``1:3``; ``0:0`` if it is not a device."""
    attributes: str
    """Extended attributes; see `tar_fields.attributes`."""


class Reader:
    """The entries of a layer, in their order; ``seen`` is given every byte of the tar.

    Iterating gives each `Entry`; `content` gives that of the latest. All raise `LayerRefused`.
    """

    def __init__(
        self, stream: Readable, seen: Callable[[bytes], object] = lambda _: None, *, most: int | None = None
    ) -> None:
        """``most``: bytes of the whole tar, by default those of the largest layer."""
        self._stream, self._seen, self._most = stream, seen, MOST_BYTES if most is None else most
        self._buffer, self._position, self._total = b"", 0, 0
        self._left, self._padding = 0, 0
        self.goes_on = False
        """Whether more than zeros follows the end of the tar; known once the last entry was read."""

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries; the whole stream is read at the end."""
        count = 0
        while (entry := self._next()) is not None:
            count += 1
            if count > MOST_ENTRIES:
                raise LayerRefused(f"it has more than {MOST_ENTRIES:,} entries")
            yield entry
        while rest := self._some(_CHUNK):  # blocks of zeros that tools write, which the hash covers
            self.goes_on = self.goes_on or rest.count(0) < len(rest)

    def content(self) -> Iterator[bytes]:
        """Yield what is left of the content of the latest entry."""
        while self._left:
            chunk = self._some(self._left)
            if not chunk:
                raise LayerRefused("it ends in the middle of a file")
            self._left -= len(chunk)
            yield chunk

    @property
    def position(self) -> int:
        """Where in the tar it is: after an entry of a file, where its content begins."""
        return self._total - len(self._buffer) + self._position

    def device(self, block: bytes, path: str) -> str:
        """Return the numbers of a device node, by its header; of a layer only those that each container
        has."""
        major, minor = number(block[329:337], "device number"), number(block[337:345], "device number")
        return default_device(path, "c" if block[156:157] == b"3" else "b", major, minor)

    def _next(self) -> Entry | None:
        long: dict[bytes, str] = {}
        pax: dict[str, str] | None = None
        while True:
            for _ in self.content():
                pass
            self._exactly(self._padding)
            self._padding = 0
            block = self._header()
            if block is None:
                if long or pax is not None:
                    raise LayerRefused("it ends between a header and its entry")
                return None
            kind = block[156:157]
            if kind not in (b"L", b"K", b"x", b"g"):
                return self._entry(block, long, pax or {})
            size = number(block[124:136], "size")
            if size > MOST_HEADER:
                raise LayerRefused(f"a header has {size:,} bytes")
            data = self._exactly(-(-size // _BLOCK) * _BLOCK)[:size]
            if kind == b"g":
                if unknown := sorted(pax_records(data).keys() - {"comment"}):
                    raise LayerRefused(f"a global header sets {unknown[0]!r} for all entries")
            elif kind == b"x":
                if pax is not None:
                    raise LayerRefused("an entry has two PAX headers")
                pax = pax_records(data)
            elif long.setdefault(kind, found := long_name(data)) is not found:
                raise LayerRefused("an entry has two long names")

    def _header(self) -> bytes | None:
        """Return the next block; None at the end: two blocks of zeros, or the end of the stream."""
        block = self._exactly(_BLOCK, may_end=True)
        if block in (b"", _ZEROS):
            if block and self._exactly(_BLOCK, may_end=True) not in (b"", _ZEROS):
                raise LayerRefused("something follows a block of zeros")
            return None
        stored = number(block[148:156], "checksum")
        blank = block[:148] + b" " * 8 + block[156:]
        # Some old tools took bytes for signed.
        if stored != (total := sum(blank)) and stored != total - 256 * sum(byte > 127 for byte in blank):
            raise LayerRefused("a header is damaged: its checksum does not match")
        return block

    def _entry(self, block: bytes, long: Mapping[bytes, str], pax: Mapping[str, str]) -> Entry:
        name, target = short_name(block), text(block[157:257])
        if ("path" in pax and b"L" in long) or ("linkpath" in pax and b"K" in long):
            raise LayerRefused("an entry has two long names")
        name = pax.get("path", long.get(b"L", name))
        target = pax.get("linkpath", long.get(b"K", target))
        path = clean_path(name)
        shown, flag = repr(path), block[156:157]
        if flag == b"S" or any(key.startswith("GNU.sparse.") for key in pax):
            # "SHOULD NOT be used" (image-spec, layer.md); a few bytes of it claim any size.
            raise LayerRefused(f"{shown} is a sparse file")
        kind = _KINDS.get(flag)
        if kind is None:
            raise LayerRefused(f"{shown} is of an unknown type, {flag!r}")
        if flag == b"\0" and name.endswith("/"):
            kind = "dir"  # before POSIX
        size = pax_number(pax, "size", shown) if "size" in pax else number(block[124:136], "size")
        uid = pax_number(pax, "uid", shown) if "uid" in pax else number(block[108:116], "uid")
        gid = pax_number(pax, "gid", shown) if "gid" in pax else number(block[116:124], "gid")
        if max(uid, gid) > MOST_ID:
            raise LayerRefused(f"{shown} has an owner that Linux does not know, {uid}:{gid}")
        if kind == "file":
            if size > self._most - self._total:
                raise LayerRefused(f"{shown} makes it longer than {self._most >> 30} GiB")
            self._left, self._padding = size, -size % _BLOCK
        if kind in ("link", "hardlink") and (not target or len(target) > MOST_PATH or "\0" in target):
            raise LayerRefused(f"{shown} links to something that is not a path")
        return Entry(
            path=path,
            kind=kind,
            mode=number(block[100:108], "mode") & 0o7777,
            uid=uid,
            gid=gid,
            mtime=pax_time(pax["mtime"], shown)
            if "mtime" in pax
            else clamped(number(block[136:148], "mtime")),
            size=size if kind == "file" else 0,
            target=clean_path(target) if kind == "hardlink" else target if kind == "link" else "",
            device=self.device(block, path) if kind == "device" else "0:0",
            attributes=attributes(pax, shown) if pax else "",
        )

    def _exactly(self, size: int, *, may_end: bool = False) -> bytes:
        """Return so many bytes; none at the end of the tar where it ``may_end`` here."""
        parts: list[bytes] = []
        left = size
        while left:
            part = self._some(left)
            if not part:
                if may_end and left == size:
                    return b""
                raise LayerRefused("it ends in the middle of an entry")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _some(self, most: int) -> bytes:
        if self._position == len(self._buffer):
            self._buffer, self._position = self._read(), 0
        part = self._buffer[self._position : self._position + most]
        self._position += len(part)
        return part

    def _read(self) -> bytes:
        try:
            data = self._stream.read(_CHUNK)
        except (zstandard.ZstdError, gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise LayerRefused(f"it cannot be decompressed: {error}") from None
        self._total += len(data)
        if self._total > self._most:
            raise LayerRefused(f"it is longer than {self._most >> 30} GiB")
        self._seen(data)
        return data
