"""Errors that are the fault of this machine, where nothing nearer to their cause handles them."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ..errors import HostError, ReprobuildError, StorageError
from .home import free_bytes, raise_if_full, room_text, storage_errors
from .os_reasons import FULL, shortage

_BUGS = (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.EXDEV)
"""What a mistake of reprobuild's own gives too, so `machine_error` leaves it."""
_TEMPORARY = "free some space there, or name another folder for temporary files in TMPDIR"
_LITTLE = 1 << 20


def machine_error(error: Exception) -> ReprobuildError | None:
    """Return the error for what nothing else handles, and is the fault of this machine; None for a bug."""
    if (short := shortage(error)) is not None:
        return HostError(short[0], hint=short[1])
    if isinstance(error, FileNotFoundError) and "usable temporary directory" in str(error):
        return StorageError(error.strerror or str(error), hint=_TEMPORARY)  # tempfile tries to write in each
    if isinstance(error, OSError) and error.filename is None and error.errno in FULL:
        return _full_somewhere(error)
    if isinstance(error, OSError) and error.filename is not None and error.errno not in _BUGS:
        try:
            with storage_errors(Path(os.fsdecode(error.filename))):
                raise error
        except ReprobuildError as known:
            return known
        except OSError:
            return None
    return None


def refuse_full_temporary(said: str, folder: Path) -> None:
    """Raise `StorageError` if a program failed because its temporary folder is full; see `raise_if_full`."""
    try:
        raise_if_full(said, folder)
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror} ({room_text(folder)})", hint=_TEMPORARY) from None


def _full_somewhere(error: OSError) -> StorageError:
    """Name the folder for temporary files if it is full; else nobody knows where a failed write went."""
    folder = Path(tempfile.gettempdir())
    with suppress(OSError):
        found = os.statvfs(folder)
        if free_bytes(folder) < _LITTLE or (found.f_files and not found.f_favail):
            return StorageError(f"{folder}: {error.strerror} ({room_text(folder)})", hint=_TEMPORARY)
    return StorageError(
        f"{error.strerror}; the system does not say where",
        hint="compare with `df` and `df -i` what is written to: REPROBUILD_HOME, the folder of an output, "
        f"and {folder}, the folder for temporary files (TMPDIR)",
    )
