"""Follow a program's standard error while it runs, to show its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_BYTES = 1000
"""Of standard error, its last, that are passed on each time."""

_HEARD_BY: ContextVar[Callable[[bytes], None] | None] = ContextVar("heard_by", default=None)


@contextmanager
def heard_by(hear: Callable[[bytes], None]) -> Iterator[None]:
    """Call ``hear`` during the block with the end of a program's standard error.

    It holds for programs that `process.run` or a container engine starts in this thread, and is called in
    another, whenever there is more.
    """
    token = _HEARD_BY.set(hear)
    try:
        yield
    finally:
        _HEARD_BY.reset(token)


def hearing() -> Callable[[bytearray], None]:
    """Return what is to be called with a program's standard error as it grows; see `heard_by`."""
    hear = _HEARD_BY.get()
    return lambda written: None if hear is None else hear(bytes(written[-_BYTES:]))
