"""Headers of one tar entry: a ustar header, with a PAX record where its fields are too short.

The same bytes as tarfile's PAX_FORMAT, which a test holds. Made here since every digest is made of them, so
they may not move with Python's version; and in a third of tarfile's time, as a stack has 20,000 entries.

Source: POSIX.1-2008, pax, "ustar Interchange Format" and "pax Header Block".
"""

from __future__ import annotations

import struct
import tarfile
from collections.abc import Mapping

_HEADER = struct.Struct("100s8s8s8s12s12s8ss100s8s32s32s8s8s155s12x")
_CHECKSUM = slice(148, 156)
_NAME_SIZE = 100
_ID_LIMIT, _SIZE_LIMIT = 8**7, 8**11
_PAX_NAME = b"././@PaxHeader"


def header(
    name: str,
    kind: bytes,
    mode: int,
    mtime: int,
    *,
    size: int = 0,
    target: str = "",
    uid: int = 0,
    gid: int = 0,
    attributes: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return the blocks before an entry's content.

    ``kind`` is one of tarfile's types, ``target`` where a link leads. A folder's name ends with a slash.
    ``attributes`` are extended ones, by name.
    """
    texts = (("path", name), ("linkpath", target))
    numbers = (("uid", uid, _ID_LIMIT), ("gid", gid, _ID_LIMIT), ("size", size, _SIZE_LIMIT))
    records = {key: text for key, text in texts if len(text) > _NAME_SIZE or not text.isascii()}
    records |= {key: str(number) for key, number, limit in numbers if number >= limit}
    for key, value in (attributes or {}).items():
        records[f"SCHILY.xattr.{key}"] = value.decode("utf-8", "surrogateescape")
    return _pax(records) + _block(
        _short(name),
        kind,
        mode=mode,
        uid=uid if uid < _ID_LIMIT else 0,
        gid=gid if gid < _ID_LIMIT else 0,
        size=size if size < _SIZE_LIMIT else 0,
        mtime=mtime,
        target=_short(target),
    )


def _short(text: str) -> bytes:
    """Return what the ustar field has; the PAX record, where there is one, counts in its place."""
    return text.encode("ascii", "replace")[:_NAME_SIZE]


def _block(
    name: bytes, kind: bytes, *, mode: int, uid: int, gid: int, size: int, mtime: int, target: bytes
) -> bytes:
    numbers = (b"%07o\0" % mode, b"%07o\0" % uid, b"%07o\0" % gid, b"%011o\0" % size, b"%011o\0" % mtime)
    names = (b"", b"", b"", b"", b"")
    block = _HEADER.pack(name, *numbers, b" " * 8, kind, target, tarfile.POSIX_MAGIC, *names)
    return block[: _CHECKSUM.start] + b"%06o\0 " % sum(block) + block[_CHECKSUM.stop :]


def _pax(records: Mapping[str, str]) -> bytes:
    if not records:
        return b""
    values = {key: text.encode("utf-8", "surrogateescape") for key, text in records.items()}
    content = b""
    try:
        "".join(records.values()).encode()
    except UnicodeEncodeError:  # a name that is no UTF-8 has surrogates here, and the record says so
        content = b"21 hdrcharset=BINARY\n"
    for key, value in values.items():
        content += _record(key.encode(), value)
    head = _block(_PAX_NAME, tarfile.XHDTYPE, mode=0, uid=0, gid=0, size=len(content), mtime=0, target=b"")
    return head + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def _record(key: bytes, value: bytes) -> bytes:
    """Return ``LENGTH KEY=VALUE`` and a newline, where the length counts itself too."""
    rest = len(key) + len(value) + 3
    size = rest + len(str(rest))
    size = rest + len(str(size))
    return b"%d %s=%s\n" % (size, key, value)
