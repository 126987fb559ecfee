"""Files of /proc that tell how much memory is used, or free: more, where the clocks run faster (`pace`).

What a program reads there it turns into numbers itself, so nothing follows them.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import re
import sys

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

_FILES = re.compile(r"/proc/(?:(?:self|\d+)/(?:statm|status|smaps_rollup)|meminfo)")
_SIZES = {
    "statm": re.compile(rb"()(\d+)"),
    "status": re.compile(rb"^(\w+:\s+)(\d+)(?= kB$)", re.MULTILINE),
    "smaps_rollup": re.compile(rb"^(\w+:\s+)(\d+)(?= kB$)", re.MULTILINE),
    # But what the machine has.
    "meminfo": re.compile(
        rb"^((?!MemTotal|SwapTotal|Huge|DirectMap|CommitLimit|VmallocTotal)[\w()]+:\s+)(\d+)(?= kB$)",
        re.MULTILINE,
    ),
}
"""The sizes in each: https://www.kernel.org/doc/html/latest/filesystems/proc.html"""
_OWN = ("psutil", __package__)
"""Modules whose reading is grown elsewhere."""


def grown(kind: str, held: bytes, times: int) -> bytes:
    """Return what such a file holds with sizes so many times as large."""
    return _SIZES[kind].sub(lambda size: b"%s%d" % (size[1], times * int(size[2])), held)


def install(times: int) -> None:
    """Give these files so from now on."""
    inner = builtins.open

    @functools.wraps(inner)
    def opened(file: Any, mode: str = "r", *arguments: Any, **keywords: Any) -> Any:
        found = inner(file, mode, *arguments, **keywords)
        path = os.fspath(file) if isinstance(file, os.PathLike) else file
        kind = _FILES.fullmatch(path) if isinstance(path, str) and mode in ("r", "rt", "rb") else None
        if kind is None or str(sys._getframe(1).f_globals.get("__name__")).startswith(_OWN):
            return found
        with found:
            held = found.read()
        data = grown(kind[0].rpartition("/")[2], held if isinstance(held, bytes) else held.encode(), times)
        return io.BytesIO(data) if isinstance(held, bytes) else io.StringIO(data.decode())

    builtins.open = io.open = opened  # the latter is what pathlib calls
