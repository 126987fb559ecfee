"""The files of the folders that a program saw: their digests, and which of them it changed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader

from ...errors import BuildError
from ...host.home import open_regular
from ...host.sandbox import Bind
from ...host.untrusted_files import opened, walk
from ..evidence import Evidence
from ..ignored import Ignored
from ..written import WrittenFile, is_left_out, written_file
from .model import MOST_FILES, InputFile
from .secrets import has_secret, is_secret_file

MOST_TEXT = 256 << 10
"""Largest text file, in bytes, whose lines are recorded one by one."""
MOST_LINES = 20_000
"""Of all files together."""
MOST_BESIDE, MOST_BESIDE_BYTES = 2000, 256 << 20
"""The most files that the program was not seen to read, and their bytes."""
_NOT_BESIDE = {".git", "__pycache__", "node_modules", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


@dataclass(frozen=True, slots=True)
class Seen:
    """The folders, as they were before a run: what each file was, by its path in the container."""

    files: Mapping[str, tuple[int, ...]]


def look(binds: Sequence[Bind]) -> Seen:
    """Return what lies in the folders that a program may write to. Raises `BuildError` for too many."""
    return Seen(
        {
            path: (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            for bind in binds
            if bind.writable
            for path, status in _below(bind)
        }
    )


def changed_since(
    before: Seen, binds: Sequence[Bind], evidence: Evidence
) -> tuple[list[WrittenFile], frozenset[str]]:
    """Return the files that were written since, and the paths of all that are not as they were."""
    now = look(binds)
    paths = {path for path, facts in now.files.items() if before.files.get(path) != facts}
    gone = before.files.keys() - now.files.keys()
    found = []
    for path in sorted(paths | gone):
        place = on_host(path, binds)
        if place is None or is_left_out(path, bound=True):
            continue
        file = place[0].source / place[1] if place[1] else place[0].source
        if path in paths and stat.S_ISREG(file.lstat().st_mode):
            found.append(written_file(file, path, evidence, Ignored(), sums=True))
        else:
            told = (
                "removed"
                if path in gone
                else f"a link to {file.readlink()}"
                if file.is_symlink()
                else "no file"
            )
            found.append(WrittenFile(path=path, size=0, digest=told, lines=None, tensors={}))
    return found, frozenset(paths | gone)


def _below(bind: Bind) -> Iterable[tuple[str, os.stat_result]]:
    if not bind.source.is_dir():
        yield bind.destination, bind.source.lstat()
        return
    for path, status in walk(bind.source):
        if not stat.S_ISDIR(status.st_mode):
            yield f"{bind.destination.rstrip('/')}/{path}", status


def on_host(path: str, binds: Sequence[Bind]) -> tuple[Bind, str] | None:
    """Return the folder that a path in the container is in, and the path below it; empty: that itself."""
    best = None
    for bind in binds:
        top = bind.destination.rstrip("/")
        if (path == top or path.startswith(f"{top}/")) and (best is None or len(top) > len(best[1])):
            best = bind, top
    return None if best is None else (best[0], path[len(best[1]) + 1 :])


def open_in(path: str, binds: Sequence[Bind]) -> BufferedReader:
    """Open a regular file by its path in the container; no link is followed below a folder.

    Raises `OSError` for anything else.
    """
    place = on_host(path, binds)
    if place is None:
        raise FileNotFoundError(path)
    bind, below = place
    if not below:
        return open_regular(bind.source)
    try:
        return opened(bind.source, below)
    except BuildError as error:
        raise OSError(error.message) from None


def input_file(path: str, binds: Sequence[Bind], room: int) -> InputFile:
    """Return a file's digest; with its lines where it is a small text of ``room`` at most. Raises OSError."""
    with open_in(path, binds) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_TEXT:
            return InputFile(path=path, size=size, sha256=hashlib.file_digest(file, "sha256").hexdigest())
        data = file.read(MOST_TEXT + 1)
    lines = line_digests(data)
    return InputFile(
        path=path,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        lines=lines if len(lines) <= 6 * room else "",
    )


def line_digests(data: bytes) -> str:
    """Return a six-digit hash for each line of a text; empty if it is binary or contains a secret."""
    if b"\0" in data or not data or has_secret(data.decode(errors="replace")):
        return ""
    return "".join(hashlib.sha256(line).hexdigest()[:6] for line in data.split(b"\n"))


def inputs(
    paths: Iterable[str],
    binds: Sequence[Bind],
    changed: frozenset[str] = frozenset(),
    guessed: frozenset[str] = frozenset(),
) -> tuple[list[InputFile], list[str]]:
    """Return the digests of the files that were read, and what has none, with the reason.

    ``changed``: paths that the run itself has changed, so that what it read is gone. ``guessed``: paths that
    may be no files.
    """
    found, missing, room = list[InputFile](), list[str](), MOST_LINES
    for path in sorted(set(paths)):
        place = on_host(path, binds)
        if place is None or is_left_out(path, bound=True):
            continue
        if path in changed:
            missing.append(f"what it read of {path}, which the run itself changed")
        elif len(found) >= MOST_FILES:
            missing.append(f"the files that it read beyond {MOST_FILES}")
            break
        else:
            try:
                path.encode()
                file = input_file(path, binds, room)
            except UnicodeEncodeError:
                missing.append(f"{path!r}, whose name is not valid UTF-8")
            except FileNotFoundError:
                continue  # the program made it and took it away again, or it was never there
            except OSError as error:
                if path not in guessed and not (place[0].source / place[1]).is_dir():
                    missing.append(f"{path}, which cannot be read: {error.strerror or error}")
            else:
                if is_secret_file(path, file.size):
                    missing.append(f"the digest of {path}, which may hold secrets by its name")
                    continue
                room -= len(file.lines) // 6
                found.append(file)
    return found, missing


def beside(binds: Sequence[Bind], known: frozenset[str]) -> tuple[list[InputFile], bool]:
    """Return the files of the folders that are not ``known``, and whether these are all."""
    found, left = list[InputFile](), MOST_BESIDE_BYTES
    for bind in binds:
        try:
            every = sorted(
                (path, status.st_size) for path, status in _below(bind) if stat.S_ISREG(status.st_mode)
            )
        except (BuildError, OSError):
            return found, False
        for path, size in every:
            if (
                path in known
                or is_left_out(path, bound=True)
                or is_secret_file(path, size)
                or _NOT_BESIDE & set(path.split("/"))
            ):
                continue
            if len(found) >= MOST_BESIDE or size > left:
                return found, False
            left -= size
            try:
                path.encode()
                found.append(input_file(path, binds, 0))
            except (OSError, UnicodeEncodeError):
                return found, False
    return found, True
