"""Keeps which files a program opens for reading, for a receipt: a path a line, each once.

Only Python's own opening is seen. What a library in C or another program opens is not, which the outside
makes up for by the digests of all that lies in the bound folders.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

MOST = 20_000
"""Paths of one process."""
_OTHERS = ("/usr/", "/proc/", "/sys/", "/dev/", sys.prefix + "/", sys.base_prefix + "/lib/")


class Opened:
    """Writes each path as it is first opened, so that a killed process has its paths too."""

    def __init__(self, folder: str) -> None:
        self._folder, self._file = folder, -1
        self._seen: set[str] = set()

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take an audit event of Python's."""
        if event != "open" or not _reads(*arguments[1:3]):
            return
        path = arguments[0]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str) or path.startswith(_OTHERS) or path.startswith(self._folder):
            return
        try:
            if not path.startswith("/"):
                path = f"{os.getcwd()}/{path}"  # noqa: PTH109 -- pathlib is not imported for this
            if path in self._seen or len(self._seen) >= MOST:
                return
            self._seen.add(path)
            self._write(os.path.realpath(path))
        except (OSError, ValueError):  # a folder that is gone, a NUL byte: no file is opened either
            return

    def _write(self, path: str) -> None:
        if self._file < 0:
            import time  # noqa: PLC0415 -- there already

            name = f"{self._folder}/{time.monotonic_ns():020d}-{os.getpid()}.opened"
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(name, flags, 0o644)
        # A forked child writes into the same file: at its end, and a line at once.
        os.write(self._file, os.fsencode(path).replace(b"\n", b"\0") + b"\n")


def _reads(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return not set(mode) & set("wx") and (mode[:1] != "a" or "+" in mode)
    if not isinstance(flags, int):
        return True
    return flags & os.O_ACCMODE != os.O_WRONLY and not flags & (os.O_TRUNC | os.O_DIRECTORY | os.O_EXCL)


def install() -> None:
    """Follow what this process opens from now on."""
    sys.addaudithook(Opened(os.environ["REPROBUILD_TWICE"]).audit)
