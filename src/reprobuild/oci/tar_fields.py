"""The fields of a tar's headers, in every form that tools write; what none of them writes is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

MOST_FOLDERS = 256
"""Parts of an entry's path."""

MOST_PATH, MOST_NAME = 4095, 255
"""Bytes of a path and of each part of it (Linux, path_resolution(7))."""

MOST_ID = (1 << 32) - 2
"""The highest number of a user or group (Linux, credentials(7))."""

_DEVICES = {
    "dev/null": (1, 3),
    "dev/zero": (1, 5),
    "dev/full": (1, 7),
    "dev/random": (1, 8),
    "dev/urandom": (1, 9),
    "dev/tty": (5, 0),
    "dev/console": (5, 1),
    "dev/ptmx": (5, 2),
}
"""The default devices of the OCI runtime specification (config-linux.md) with their numbers (Linux,
admin-guide/devices.txt). A runtime mounts its own over them, so a layer may list them."""

_ATTRIBUTE = "SCHILY.xattr."
_OF_THE_HOST = re.compile(r"security\.(selinux|ima|evm)$|(trusted|user)\.overlay\.")
"""Labels of the host's security modules, and what overlayfs notes for itself."""
_NOTES = re.compile(r"(trusted|user)\.(overlay|fuseoverlayfs)\.(?!(impure|nlink|origin|upper|uuid)$)")
"""What makes overlayfs and fuse-overlayfs hide files, or show others in their place: engines unpack it."""

_OCTAL = re.compile(rb"[0-7]*")
_DECIMAL = re.compile(r"[0-9]{1,20}")
_TIME = re.compile(r"-?[0-9]{1,20}(\.[0-9]{0,20})?")


class LayerRefused(Exception):  # noqa: N818 -- callers turn it into one of errors.py
    """A damaged layer, or one with a forbidden entry; the text describes the fault."""


def clean_path(name: str) -> str:
    """Return a name without a leading slash and parts that mean nothing; empty for the root.

    Raises `LayerRefused` for one that leads upwards, or is longer than Linux takes.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise LayerRefused(f"{name[:80]!r} leads out of the layer")
    if "\0" in name:
        raise LayerRefused(f"{name[:80]!r} has a NUL byte in it")
    lengths = [len(part.encode("utf-8", "surrogateescape")) for part in parts]
    if (
        len(parts) > MOST_FOLDERS
        or sum(lengths) + len(parts) > MOST_PATH
        or max(lengths, default=0) > MOST_NAME
    ):
        raise LayerRefused(f"{name[:80]!r}… is too long for a path")
    return "/".join(parts)


def default_device(path: str, kind: str, major: int, minor: int) -> str:
    """Return the numbers of a device node, as ``1:3``; ``kind`` is ``c`` for a character device.

    Raises `LayerRefused` for any but the default ones.
    """
    if kind != "c" or _DEVICES.get(path) != (major, minor):
        raise LayerRefused(
            f"{path!r} is a device node ({kind} {major}:{minor}), which would reach the host's hardware"
        )
    return f"{major}:{minor}"


def pax_records(data: bytes) -> dict[str, str]:
    """Return the records of a PAX header (POSIX.1-2017, pax, "Extended Header")."""
    found: dict[str, str] = {}
    position = 0
    while position < len(data):
        head, space, _ = data[position : position + 8].partition(b" ")
        length = int(head) if space and re.fullmatch(rb"[1-9][0-9]*", head) else 0
        record = data[position + len(head) + 1 : position + length]
        key, equals, value = record.partition(b"=")
        if not equals or not record.endswith(b"\n") or position + length > len(data):
            raise LayerRefused("a PAX header is damaged")
        if value == b"\n" and key in (b"path", b"linkpath"):
            # POSIX: as if the header had none either; Go (archive/tar, mergePAX) keeps the header's.
            raise LayerRefused(f"a PAX header is damaged: {text(key)!r} has no value")
        found[text(key, whole=True)] = text(value[:-1], whole=True)
        position += length
    return found


def text(field: bytes, *, whole: bool = False) -> str:
    """Return a text, up to its first NUL byte unless ``whole``; what is not UTF-8 becomes surrogates."""
    return (field if whole else field.partition(b"\0")[0]).decode("utf-8", "surrogateescape")


def long_name(data: bytes) -> str:
    """Return a long name in GNU's form, from before its header. Raises `LayerRefused` for an empty one,
    in whose place Go (archive/tar) keeps the header's.
    """
    if not (found := text(data)):
        raise LayerRefused("a long name is empty")
    return found


def short_name(block: bytes) -> str:
    """Return the name in a header, with its prefix. Raises `LayerRefused` where tools differ on that."""
    name = text(block[:100])
    if block[257:263] == b"ustar\0":
        # star's own form has two times behind a shorter prefix.
        prefix = text(block[345 : 476 if block[508:512] == b"tar\0" else 500])
        return f"{prefix}/{name}" if prefix else name
    if block[257:265] == b"ustar  \0":
        # GNU's form has two times there; where they are none, Go (archive/tar, readHeader) sees a prefix.
        for start, what in ((345, "atime"), (357, "ctime")):
            number(block[start : start + 12], what)
    elif text(block[345:500]):
        raise LayerRefused(f"{name[:80]!r} has a prefix in a header without one")
    return name


def number(field: bytes, what: str) -> int:
    """Return a number of a header: octal digits, or in GNU's form a sign bit and a binary one."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    if field[0] == 0xFF and what.endswith("time"):
        return -1  # before 1970
    digits = field.partition(b"\0")[0].strip(b" ")
    # Go trims a NUL byte before the digits (archive/tar, parseOctal), and others end the number there.
    if not _OCTAL.fullmatch(digits) or (not digits and field.strip(b" \0")):
        raise LayerRefused(f"a header is damaged: {what} is {field!r}")
    return int(digits or b"0", 8)


def pax_number(pax: Mapping[str, str], key: str, shown: str) -> int:
    """Return a number of a PAX header; ``shown`` is the entry, for the message."""
    if not _DECIMAL.fullmatch(pax[key]):
        raise LayerRefused(f"{shown}: {key} is {pax[key][:40]!r}")
    return int(pax[key])


def attributes(pax: Mapping[str, str], shown: str) -> str:
    """Return the extended attributes of a PAX header, a line each by name: ``security.capability=01…``.

    Without those that a host sets on every file of its own accord. ``shown`` is the entry, for the message.
    """
    for key in pax:
        if key.startswith(_ATTRIBUTE) and _NOTES.match(key, len(_ATTRIBUTE)):
            name = key.removeprefix(_ATTRIBUTE)[:80]
            raise LayerRefused(f"{shown} has the attribute {name!r}, which shows other files once mounted")
    return attribute_lines(
        (key.removeprefix(_ATTRIBUTE), value.encode("utf-8", "surrogateescape"))
        for key, value in pax.items()
        if key.startswith(_ATTRIBUTE)
    )


def attribute_lines(found: Iterable[tuple[str, bytes]]) -> str:
    """Return extended attributes by name and value as `attributes` does."""
    kept = sorted((name, value) for name, value in found if not _OF_THE_HOST.match(name))
    return "\n".join(f"{name}={value.hex()}" for name, value in kept)


def pax_time(value: str, shown: str) -> int:
    """Return a time of a PAX header in whole seconds; see `clamped`."""
    if not _TIME.fullmatch(value):
        raise LayerRefused(f"{shown}: mtime is {value[:40]!r}")
    return clamped(math.floor(float(value)))


def clamped(seconds: int) -> int:
    """Return a time that every file system supports; otherwise 0."""
    return seconds if 0 <= seconds < 1 << 33 else 0
