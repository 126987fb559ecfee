"""A Debian package (deb(5)): its hash checked, its files read within limits, its entry in apt's index.

Not by python-debian's own reader, ``tarfile``, which takes headers and files of any length into memory.
"""

from __future__ import annotations

import lzma
import os
import shutil
import tarfile
from collections.abc import Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from debian.arfile import FILE_HEADER_LENGTH, GLOBAL_HEADER, ArError
from debian.deb822 import DebControl
from debian.debfile import DebError, DebFile

from ..errors import BuildError
from ..host.workers import check_wanted, sha256_of
from ..lock.packages import DebianPackage
from ..oci.stream import CHUNK, Member, archive_members, from_chunks
from ..oci.tar_fields import LayerRefused
from .store import DAMAGED, Store

_MOST_CONTROL = 16 << 20
"""Bytes of a package's control file, which has some thousand."""
_LARGEST = 1 << 30
"""Bytes of a package's files that are inflated before dpkg reads them."""
_PACKED = "data.tar.xz"


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
    """Return the control file of a package. Raises `LayerRefused` or `DebError`."""
    for member in package_files(deb, "control.tar"):
        if member.name == "control" and member.file is not None:
            text = member.file.read(_MOST_CONTROL)
            if len(text) == _MOST_CONTROL:
                raise DebError("its control file is too long")
            return DebControl(text)
    raise DebError("it has no control file")


def archive_entry(package: DebianPackage, *, store: Store, folder: Path | None = None) -> str:
    """Return the entry of a package in the index of a flat archive.

    With ``folder`` the package is written there, inflated if it can be, and the entry is of that file. Raises
    `BuildError` for bytes that are not the lock's, or no package.
    """
    file = store.path(package.sha256)
    described = file if folder is None else folder / package.filename
    try:
        with file.open("rb") as opened:
            # Here, since apt compares with what is written below.
            if sha256_of(opened) != package.sha256:
                raise BuildError(f"{package.filename}: its bytes in the store are damaged", hint=DAMAGED)
            opened.seek(0)
            with DebFile(fileobj=opened) as deb:
                control = control_file(deb)
                if folder is not None and not _inflated(deb, described):
                    shutil.copyfile(file, described)
    except (ArError, DebError, LayerRefused, tarfile.TarError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's, not one of python-debian's own
        raise BuildError(
            f"{package.filename}, which the lock names, is not a Debian package: {error}",
            hint="lock its request anew: `reprobuild lock --upgrade`",
        ) from None
    if folder is not None:
        described.chmod(0o644)
    with described.open("rb") as written:
        control["SHA256"] = sha256_of(written)
    control["Filename"] = f"./{package.filename}"
    control["Size"] = str(described.stat().st_size)
    text = control.dump()
    assert text is not None
    return text


def _inflated(deb: DebFile, target: Path) -> bool:
    """Write a package with its files in a plain tar (deb(5)); return whether it could be done.

    Not with another compression than xz, damage, or files beyond the limit: dpkg is to judge those.
    """
    if _PACKED not in deb.getnames():
        return False
    with target.open("wb") as out:
        out.write(GLOBAL_HEADER)
        for member in deb.getmembers():
            start = out.tell()
            out.write(bytes(FILE_HEADER_LENGTH))
            member.seek(0)  # python-debian has read some of them
            name, source = member.name, cast("IO[bytes]", member)
            if name == _PACKED:
                name, source = "data.tar", lzma.LZMAFile(source)  # noqa: SIM115 -- it has no file of its own
            left = _LARGEST
            try:
                while left and (data := source.read(min(CHUNK, left))):
                    check_wanted()
                    left -= out.write(data)
            except (lzma.LZMAError, EOFError):
                return False
            if not left:
                return False
            size = _LARGEST - left
            out.write(b"\n" * (size % 2))
            out.seek(start)
            out.write(f"{name:<16}{'0':<12}{'0':<6}{'0':<6}{'100644':<8}{size:<10}`\n".encode())
            out.seek(0, os.SEEK_END)
    return True
