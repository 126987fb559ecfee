"""Descriptors of open folders, which have no file object."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags to open a folder."""


@contextmanager
def closing_descriptor(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
