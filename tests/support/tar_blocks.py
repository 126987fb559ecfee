"""Layers as tar, for tests of reading.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest

from reprobuild.oci.tar_fields import LayerRefused
from reprobuild.oci.tar_reader import Entry, Reader


def read(data: bytes) -> list[tuple[Entry, bytes]]:
    reader = Reader(io.BytesIO(data))
    return [(entry, b"".join(reader.content())) for entry in reader]


def refusal(data: bytes) -> str:
    with pytest.raises(LayerRefused) as caught:
        read(data)
    return str(caught.value)


def changed(data: bytes, start: int, new: bytes) -> bytes:
    """The first header with other bytes and the checksum that fits them."""
    block = bytearray(data[:512])
    block[start : start + len(new)] = new
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + data[512:]


def info(name: str = "x", **fields: Any) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(found, key, value)
    return found
