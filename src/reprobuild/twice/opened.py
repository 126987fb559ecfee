"""Read the list of files that the processes of a run opened for reading. Untrusted."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import BuildError, RepeatError
from ..host.untrusted_files import opened

SETTING = "REPROBUILD_TWICE_OPENED"
"""The variable that asks the recorder for them."""
MOST_BYTES = 32 << 20
"""Of all files of a run together."""
MOST_FILES = 4096
MOST_PATHS = 20_000
"""Of one process, as in ``in_image.twice.opened``."""
_CACHE = "/__pycache__/"


def read_opened(folder: Path) -> tuple[tuple[str, ...], bool]:
    """Return the paths in the container, sorted, a module's source in the place of its bytecode; and whether
    some may be missing, since there are too many.

    Raises `RepeatError`.
    """
    found: set[str] = set()
    left = MOST_BYTES
    every = sorted(folder.glob("*.opened"))
    cut = len(every) > MOST_FILES
    for path in every[:MOST_FILES]:
        try:
            with opened(folder, path.name) as file:  # a link could lead out of the folder
                data = file.read(left + 1)
        except (OSError, BuildError) as error:
            raise RepeatError(f"the records of a run cannot be read: {path.name}: {error}") from None
        left -= len(data)
        if left < 0:
            raise RepeatError(
                f"the records of a run cannot be read: more than {MOST_BYTES >> 20} MiB of paths"
            )
        lines = data.split(b"\n")[:-1]
        cut = cut or len(lines) >= MOST_PATHS
        found |= {_source(os.fsdecode(line)) for line in lines if line.startswith(b"/") and b"\0" not in line}
    return tuple(sorted(found)), cut


def _source(path: str) -> str:
    """Return the path of the source that a file of bytecode was compiled from."""
    folder, cache, name = path.rpartition(_CACHE)
    return f"{folder}/{name.partition('.')[0]}.py" if cache and name.endswith(".pyc") else path
