"""Worker threads that stop soon after their block fails or is interrupted."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_CHUNK = 1 << 18

_ENDED_BY: ContextVar[threading.Event | None] = ContextVar("ended_by", default=None)


class WorkEndedError(Exception):
    """The work that this thread belongs to has failed; its result is not needed."""


def end_with(event: threading.Event) -> None:
    """Kill what `process.run` starts in this thread once an event is set."""
    _ENDED_BY.set(event)


def ending() -> threading.Event | None:
    """Return the event that cancels this thread's work; None without one."""
    return _ENDED_BY.get()


def check_wanted() -> None:
    """Raise `WorkEndedError` if this thread's work was cancelled; call it regularly."""
    if (event := ending()) is not None and event.is_set():
        raise WorkEndedError


def sha256_of(file: IO[bytes]) -> str:
    """Return the SHA-256 of what is left of a file, in hexadecimal; as `check_wanted`, end cancelled work.

    A library of CUDA's takes seconds, which Ctrl-C would otherwise wait for.
    """
    content = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        check_wanted()
        content.update(chunk)
    return content.hexdigest()


def while_wanted(advance: Callable[[int], None]) -> Callable[[int], None]:
    """Return a function that notes progress and, as `check_wanted`, ends work that was cancelled."""

    def advanced(amount: int) -> None:
        check_wanted()
        advance(amount)

    return advanced


@contextmanager
def workers(
    count: int, name: str = "", *, stop: threading.Event | None = None
) -> Iterator[ThreadPoolExecutor]:
    """Some threads; when the block fails, waiting work is dropped and running work stops soon.

    ``stop`` is set then, and ends the work too. Without it, work ends with that of this thread.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 -- who only lists images need not wait

    outer = ending() if stop is None else None
    event = outer or stop or threading.Event()
    pool = ThreadPoolExecutor(count, name, initializer=end_with, initargs=(event,))
    try:
        yield pool
    except BaseException:
        if outer is None:
            event.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
