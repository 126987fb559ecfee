"""Archives sent to the compiler in the image, and its output.

``in_image/bytecode.py`` describes their form. The compiler is a program of the image, which may come from a
base image of a stranger's, so its answer counts for nothing but the bytecode of what it was given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ..errors import BuildError
from ..host import untrusted_files

SOURCES, BYTECODE = ".sources", ".bytecode"

_MAGIC = {"3.9": 3425, "3.10": 3439, "3.11": 3495, "3.12": 3531, "3.13": 3571, "3.14": 3627}
"""Minor version → the number at the start of its bytecode (CPython, ``pycore_magic_number.h``)."""
_UNCHECKED_HASH = (1).to_bytes(4, "little")
_HEAD = 16
_LONGEST_LINE = 8192
_LEAST_BOUND, _GROWTH = 1 << 20, 500
"""Bytecode of more bytes than the first, and than the second times its source's, is refused: the compiler
folds at most ``"x" * 4096``."""


class Sources:
    """An archive of Python files that is being written, with its members."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sizes: dict[str, int] = {}
        """Path in the image without a leading slash → bytes."""

    def add(self, path: str, content: bytes) -> None:
        """Add a Python file. Add them sorted by path."""
        self._file.write(json.dumps([f"/{path}", len(content)]).encode() + b"\n" + content)
        self.sizes[path] = len(content)

    def close(self) -> None:
        """End the archive."""
        self._file.close()


class Bytecode:
    """The compiled files of some archives in ``stage``; where two have the same path, that of the first.

    ``sent`` has what each archive, by its package, was made of. Raises `BuildError` where an answer is
    anything but bytecode of those files, for the Python of ``version`` (``3.11``), that is used unchecked.
    """

    def __init__(self, stage: Path, sent: Mapping[str, Mapping[str, int]], version: str) -> None:
        self._stage = stage
        self._magic = _MAGIC.get(version)
        self._found: dict[str, tuple[str, int, int]] = {}
        tag = f"cpython-{version.replace('.', '')}"
        for package, sources in sent.items():
            bounds = {_compiled(path, tag): size for path, size in sources.items()}
            self._read(f"{package}{BYTECODE}", bounds)

    def paths(self) -> list[str]:
        """Return the paths in the image, without a leading slash, sorted."""
        return sorted(self._found)

    def read(self, path: str) -> bytes:
        """Return the content of one."""
        archive, start, size = self._found[path]
        with untrusted_files.opened(self._stage, archive) as file:
            file.seek(start)
            return file.read(size)

    def _read(self, archive: str, sources: Mapping[str, int]) -> None:
        seen: set[str] = set()
        try:
            file = untrusted_files.opened(self._stage, archive)
        except FileNotFoundError:
            raise _refused(archive, "it is missing") from None
        with file:
            while line := file.readline(_LONGEST_LINE):
                path, size = _entry(line, archive)
                if path not in sources or path in seen:
                    raise _refused(archive, f"it has {path!r}, which was not asked for")
                seen.add(path)
                if not _HEAD < size <= max(_LEAST_BOUND, _GROWTH * sources[path]):
                    raise _refused(archive, f"/{path} has {size} bytes, and its source {sources[path]}")
                start = file.tell()
                if start + size > os.fstat(file.fileno()).st_size:
                    raise _refused(archive, f"/{path} is cut short")
                self._check(file.read(_HEAD + 1), path, archive)
                file.seek(start + size)
                self._found.setdefault(path, (archive, start, size))

    def _check(self, head: bytes, path: str, archive: str) -> None:
        magic = int.from_bytes(head[:2], "little")
        if head[2:4] != b"\r\n" or (self._magic is not None and magic != self._magic):
            raise _refused(archive, f"/{path} is not bytecode for this Python")
        if head[4:8] != _UNCHECKED_HASH or head[_HEAD] & 0x7F != ord("c"):
            raise _refused(archive, f"/{path} is not bytecode of the kind that was asked for")


def _compiled(path: str, tag: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.{tag}.pyc"


def _entry(line: bytes, archive: str) -> tuple[str, int]:
    try:
        path, size = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        raise _refused(archive, "it cannot be read") from None
    if not isinstance(path, str) or type(size) is not int or not path.startswith("/"):
        raise _refused(archive, "it cannot be read")
    return path[1:], size


def _refused(archive: str, reason: str) -> BuildError:
    return BuildError(
        f"the image's interpreter gave bytecode that is refused: {archive.removesuffix(BYTECODE)}: {reason}",
        hint="check the origin of the interpreter: the base image, or the conda channel",
    )
