"""Archives of Python files for the compiler in the image, and of what it answers.

``in_image/bytecode.py`` describes their form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO

SOURCES, BYTECODE = ".sources", ".bytecode"


def add(archive: IO[bytes], path: str, content: bytes) -> None:
    """Add a Python file, by its path in the image without a leading slash. Add them sorted by path."""
    archive.write(json.dumps([f"/{path}", len(content)]).encode() + b"\n" + content)


class Bytecode:
    """The compiled files in some archives; where two have the same path, that of the first archive."""

    def __init__(self, archives: Iterable[Path]) -> None:
        self._found: dict[str, tuple[Path, int, int]] = {}
        for archive in archives:
            with archive.open("rb") as file:
                for line in file:
                    path, size = json.loads(line)
                    self._found.setdefault(path.lstrip("/"), (archive, file.tell(), size))
                    file.seek(size, 1)

    def paths(self) -> list[str]:
        """Return the paths in the image, without a leading slash, sorted."""
        return sorted(self._found)

    def read(self, path: str) -> bytes:
        """Return the content of one."""
        archive, start, size = self._found[path]
        with archive.open("rb") as file:
            file.seek(start)
            return file.read(size)
