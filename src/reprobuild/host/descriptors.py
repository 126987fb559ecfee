"""Descriptors: of open folders, which have no file object, and of pipes."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags to open a folder."""

_LOOK_MILLISECONDS = 50


@contextmanager
def closing_descriptor(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def has_more(pipe: IO[bytes], status: Callable[[], int | None]) -> bool:
    """Wait until a pipe can be read; False once its process has a status and all that it wrote was read."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while True:
        ended = status() is not None  # asked first: by then the pipe has all that the process wrote
        if poll.poll(0 if ended else _LOOK_MILLISECONDS):
            return True
        if ended:
            return False
