"""A stranger's Debian package: what it says of itself, within limits."""

from __future__ import annotations

import io
import tarfile
import zlib

import pytest
from debian.debfile import DebError, DebFile

from reprobuild.fetch.deb_file import control_file
from reprobuild.oci.tar_fields import LayerRefused


def package(head: tarfile.TarInfo, size: int, text: bytes) -> DebFile:
    """Return a package whose control.tar begins with a header and some of its content."""
    head.size = size
    packed = zlib.compressobj(1, zlib.DEFLATED, 31)
    control = packed.compress(head.tobuf()) + packed.compress(text) + packed.flush()
    found = b"!<arch>\n"
    members = {"debian-binary": b"2.0\n", "control.tar.gz": control, "data.tar": bytes(1024)}
    for name, data in members.items():
        row = f"{name:<16}{'0':<12}{'0':<6}{'0':<6}{'100644':<8}{len(data):<10}`\n"
        found += row.encode() + data + b"\n" * (len(data) % 2)
    return DebFile(fileobj=io.BytesIO(found))


def test_the_control_file_is_read() -> None:
    text = b"Package: a\nVersion: 1\n"
    found = control_file(package(tarfile.TarInfo("./control"), len(text), text.ljust(1536, b"\0")))
    assert dict(found) == {"Package": "a", "Version": "1"}


def test_a_control_file_without_end_is_not_read_into_memory() -> None:
    """Some megabytes of a package took gigabytes, outside of any limit."""
    with pytest.raises(DebError, match="its control file is too long"):
        control_file(package(tarfile.TarInfo("./control"), 1 << 34, b"A" * (32 << 20)))


def test_a_header_without_end_is_not_read_into_memory() -> None:
    head = tarfile.TarInfo("x")
    head.type = tarfile.XHDTYPE
    with pytest.raises(LayerRefused, match="a header has 1,073,741,824 bytes"):
        control_file(package(head, 1 << 30, b"A"))
