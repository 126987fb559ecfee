"""The files of a Debian package (deb(5)), read within limits.

Not by python-debian's own reader, ``tarfile``, which takes headers and files of any length into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BufferedReader
from typing import cast

from debian.deb822 import DebControl
from debian.debfile import DebError, DebFile

from ..oci.stream import CHUNK, Member, archive_members, from_chunks

_MOST_CONTROL = 16 << 20
"""Bytes of a package's control file, which has some thousand."""


def package_files(deb: DebFile, part: str) -> Iterator[Member]:
    """Give the files in ``control.tar`` or ``data.tar`` of a package.

    Raises `LayerRefused`, or `DebError` without it.
    """
    name = next((name for name in deb.getnames() if name.startswith(part)), None)
    if name is None:
        raise DebError(f"it has no {part}")
    packed = from_chunks(iter(partial(deb.getmember(name).read, CHUNK), b""))
    return archive_members(cast("BufferedReader", packed))


def control_file(deb: DebFile) -> DebControl:
    """Return what a package says of itself. Raises `LayerRefused` or `DebError`."""
    for member in package_files(deb, "control.tar"):
        if member.name == "control" and member.file is not None:
            text = member.file.read(_MOST_CONTROL)
            if len(text) == _MOST_CONTROL:
                raise DebError("its control file is too long")
            return DebControl(text)
    raise DebError("it has no control file")
