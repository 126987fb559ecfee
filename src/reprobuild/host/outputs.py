"""Large files that a user names for output: written as a whole or not at all, by one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..errors import StorageError
from .console import Console
from .home import NO_LOCKS, open_claimed, storage_errors


@contextmanager
def one_writer(file: Path, console: Console) -> Iterator[Path]:
    """Yield an empty file beside ``file``, which takes its place at the end of the block.

    A second process that writes the same file waits for the first, and says so. When the block fails, what
    was there before is unchanged. Raises `StorageError`.
    """
    # One fixed name, so that killed writers leave at most this one file and the next reuses it.
    partial = file.with_name(f".{file.name}.partial")
    with storage_errors(file.parent), ExitStack() as claimed:
        try:
            _claim(partial, file, claimed, console)
        except StorageError as error:
            # Only two at once need a lock, which some network file systems lack.
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in NO_LOCKS:
                raise
        try:
            with storage_errors(file.parent):  # a full disk has room once the file is gone
                partial.write_bytes(b"")
                yield partial
                partial.replace(file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _claim(partial: Path, file: Path, claimed: ExitStack, console: Console) -> None:
    taken = open_claimed(partial, fcntl.LOCK_EX | fcntl.LOCK_NB, mode=None)
    if taken is None:
        console.step(f"waiting for another reprobuild, which writes {file}")
    while taken is None:
        taken = open_claimed(partial, fcntl.LOCK_EX, mode=None)
    claimed.enter_context(taken)
