"""The files of an imported project. Its author is a stranger: only regular files of the project are read."""

from __future__ import annotations

import codecs
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from ..errors import RequestError
from ..host.home import open_regular

MOST_BYTES = 32 << 20
"""Of a file; the longest known locks have a few megabytes."""

MOST_REQUIREMENTS = 50_000
"""That one import parses, each as often as it is parsed; the longest known files have a few thousand."""

_BYTE_ORDER = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_EXPECTED = "expected UTF-8, or UTF-16 or UTF-32 with a byte-order mark"

_MARKS = (".git", ".hg")
_PROJECTS = ("pyproject.toml", "setup.py", "setup.cfg")

_ROOTS: ContextVar[tuple[str, ...]] = ContextVar("roots", default=())
_PARSED: ContextVar[itertools.count[int] | None] = ContextVar("parsed", default=None)


@contextmanager
def of_project(file: Path) -> Iterator[None]:
    """Let the block read no files but those of the project that a file belongs to.

    That is what lies below the repository's folder, else the outermost one of a project, else the
    file's own; and below the working directory. The block parses at most `MOST_REQUIREMENTS`.
    """
    folder = file.absolute().parent
    above = [folder, *folder.parents]
    repository = next((each for each in above if _has(each, _MARKS)), None)
    root = repository or next((each for each in reversed(above) if _has(each, _PROJECTS)), folder)
    token = _ROOTS.set(tuple({os.path.realpath(root), os.path.realpath(folder), os.path.realpath(".")}))
    parsed = _PARSED.set(itertools.count(1))
    try:
        yield
    finally:
        _PARSED.reset(parsed)
        _ROOTS.reset(token)


def count_requirement(place: str) -> None:
    """Count a requirement of an import. Raises `RequestError` when there are too many."""
    parsed = _PARSED.get()
    if parsed is not None and next(parsed) > MOST_REQUIREMENTS:
        raise RequestError(
            f"{place}: more than {MOST_REQUIREMENTS:,} requirements",
            hint="import a file that names each once",
        )


def _has(folder: Path, names: tuple[str, ...]) -> bool:
    return any(os.path.lexists(folder / name) for name in names)


def read_text(file: Path) -> str:
    """Read a file. Raises `RequestError` for one outside the project, or that is not a regular file."""
    try:
        _check_place(file)
        with open_regular(file) as opened:
            content = opened.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise RequestError(f"{file}: has more than {MOST_BYTES >> 20} MiB")
        # As pip does it; PowerShell's `>` writes UTF-16. The mark of UTF-32 begins with one of UTF-16.
        encoding = next((name for mark, name in _BYTE_ORDER if content.startswith(mark)), "utf-8-sig")
        text = content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise RequestError(f"{file}: no such file") from None
    except UnicodeDecodeError:
        raise RequestError(f"{file}: not valid text: {_EXPECTED}", hint="save it as UTF-8") from None
    except OSError as problem:
        raise RequestError(f"{file}: cannot be read: {problem.strerror}") from None
    except ValueError:  # a character that no path has
        raise RequestError(f"{str(file)!r} is not the name of a file") from None
    if "\0" in text:
        raise RequestError(f"{file}: has null characters: {_EXPECTED}", hint="save it as UTF-8")
    return text


def is_inside(file: Path) -> bool:
    """Whether a file is one of the project, so that it may be read."""
    real, roots = os.path.realpath(file), _ROOTS.get()
    return not roots or any(os.path.commonpath((real, root)) == root for root in roots)


def _check_place(file: Path) -> None:
    if not is_inside(file):
        raise RequestError(
            f"{file}: leads out of the project, to {os.path.realpath(file)}, and is not read",
            hint=f"the project is the folder {min(_ROOTS.get(), key=len)}; copy the file there",
        )
