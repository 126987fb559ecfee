"""Files that a run wrote: their bytes, their text without times, their tensors."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import RepeatError
from ..host.untrusted_files import LONGEST_PATH
from . import databases, event_files, library_formats
from .checkpoints import tensors
from .evidence import Evidence
from .ignored import Ignored
from .sparse import sparse_digest
from .text_tokens import general

MOST_FILES = 20_000
MOST_TEXT = 8 << 20
"""Bytes of a file whose lines are compared where its bytes differ."""
MOST_CACHED = 1 << 20
"""Bytes of a file of a cache that is read."""
MOST_KEPT = 4 << 20
"""Size of a binary file up to which its bytes are kept, for the case that it differs."""
MOST_KEPT_TOGETHER = 32 << 20
MOST_HELD = 256 << 20
"""Bytes of a run's texts after which only small ones are compared by lines: all are in memory."""

EMPTY_FOLDER = "an empty folder"
_EMPTY_FILE = hashlib.sha256(b"0:").hexdigest()
"""Its `sparse_digest`."""

LEFT_OUT: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("bytecode in __pycache__", re.compile(r"(?:.*/)?__pycache__(?:/.*)?")),
    ("caches in ~/.cache, ~/.triton and ~/.nv", re.compile(r"(?:.*/)?\.(?:cache|triton|nv)(?:/.*)?")),
    ("/tmp, /var/tmp, /run, /dev, /proc and /sys", re.compile(r"/(?:tmp|var/tmp|run|dev|proc|sys)(?:/.*)?")),  # noqa: S108
    ("the recorder's own", re.compile(r".*/reprobuild_twice(?:\.pth|/.*)?")),
    ("/etc of the container", re.compile(r"/etc(?:/.*)?")),
)
"""Rules of what is not compared: the name of each, and its paths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenFile:
    """A file that a run wrote, or removed."""

    path: str
    """In the container; what differs in every run by its nature is replaced by what it is."""
    size: int
    digest: str
    """That of its bytes, see `sparse_digest`; ``removed``, or where a link leads."""
    lines: tuple[str, ...] | None
    """Of a text, or of a database's rows, without those that are ignored."""
    tensors: Mapping[str, str]
    content: bytes = b""
    """The bytes of a small binary file; else empty."""
    sha256: str = ""
    """SHA-256 of its bytes in hex; empty: not requested, or not a regular file."""

    def meaning(self, evidence: Evidence) -> str:
        """Return a digest of what counts: a text without times, a checkpoint's tensors, else the bytes."""
        if self.lines is None and not self.tensors:
            return self.digest
        lines = [general(line, evidence) for line in self.lines or ()]
        compared = lines if self.lines is not None else sorted(self.tensors.items())
        return hashlib.sha256(json.dumps(compared).encode()).hexdigest()


_CACHES = LEFT_OUT[1][1]
_ANYWHERE = LEFT_OUT[:2]
"""What is not compared in a folder that the user bound, wherever that is."""


def is_left_out(path: str, *, bound: bool = False) -> bool:
    """Whether a path in the container, or below a folder that the user bound, is not compared."""
    return any(pattern.fullmatch(path) for _, pattern in (_ANYWHERE if bound else LEFT_OUT))


def cached_files(folder: Path, destination: str) -> dict[str, str]:
    """Return the files of caches by path, with what of them is cheap to read: they are only mentioned."""
    found: dict[str, str] = {}
    for path in _below(folder):
        inside = f"{destination.rstrip('/')}/{path.relative_to(folder)}"
        if _CACHES.fullmatch(inside) and len(found) < MOST_FILES:
            status = path.lstat()
            small = stat.S_ISREG(status.st_mode) and status.st_size <= MOST_CACHED
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if small else ""
            found[inside] = f"{status.st_size} {digest}"
    return found


def written_files(
    folder: Path, destination: str, evidence: Evidence, ignored: Ignored, *, sums: bool = False
) -> tuple[list[WrittenFile], bool]:
    """Return the files and the empty folders below one that was written over another, and whether these
    are all.

    ``sums``: with the SHA-256 of each. A link is not followed. A device with the numbers 0, 0 is overlayfs's
    mark for a file that was removed.
    """
    found: list[WrittenFile] = []
    held = kept = 0
    for path in _below(folder):
        inside = f"{destination.rstrip('/')}/{path.relative_to(folder)}"
        if is_left_out(inside, bound=destination != "/") or ignored.has_file(inside):
            continue
        if len(found) >= MOST_FILES:
            return found, False
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            most = MOST_TEXT if held < MOST_HELD else MOST_CACHED
            few = MOST_KEPT if kept < MOST_KEPT_TOGETHER else 0
            found.append(written_file(path, inside, evidence, ignored, sums=sums, most=most, keep=few))
            kept += len(found[-1].content)
            held += status.st_size if found[-1].lines is not None else 0
        else:
            digest, lines = _other(path, status), None
            if stat.S_ISLNK(status.st_mode):  # where it leads may have a drawn name in it
                lines = (digest,)
            found.append(
                WrittenFile(path=general(inside, evidence), size=0, digest=digest, lines=lines, tensors={})
            )
    return found, True


def without_mount_points(files: Sequence[WrittenFile], bound: Sequence[str]) -> list[WrittenFile]:
    """Return the files without the empty folders and files that an engine makes where it binds others."""
    points = {destination.rstrip("/") for destination in bound}
    return [f for f in files if f.digest not in (EMPTY_FOLDER, _EMPTY_FILE) or f.path not in points]


def _other(path: Path, status: os.stat_result) -> str:
    """Return the placeholder content of a link, a removed file or a folder."""
    if stat.S_ISLNK(status.st_mode):
        return f"a link to {path.readlink()}"
    if stat.S_ISDIR(status.st_mode):
        return EMPTY_FOLDER
    return "removed" if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0 else "no file"


def _below(folder: Path) -> Iterator[Path]:
    """Yield everything but folders that are not empty, those of a folder before its subfolders. Follows no
    links.

    `os.walk` calls itself for each level before Python 3.12, and a program can leave thousands.
    """
    todo = [folder]
    while todo:
        below = todo.pop()
        with os.scandir(below) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        if any(len(os.fsencode(each.path)) > LONGEST_PATH for each in found):
            raise RepeatError(
                f"the program left folders nested too deep to read: {below.relative_to(folder).parts[0]}/…",
                hint=f"have it remove them at its end: a path can have {LONGEST_PATH:,} bytes",
            )
        if not found and below != folder:
            yield below
        yield from (Path(each.path) for each in found if not each.is_dir(follow_symlinks=False))
        todo += [Path(each.path) for each in reversed(found) if each.is_dir(follow_symlinks=False)]


def _is_text(head: bytes) -> bool:
    """Whether bytes are a text, none of which is written as the escape of another byte."""
    if b"\\x" in head:
        try:
            head.decode()
        except UnicodeDecodeError:
            return False
    return b"\0" not in head


def written_file(
    path: Path,
    inside: str,
    evidence: Evidence,
    ignored: Ignored,
    *,
    sums: bool = False,
    most: int = MOST_TEXT,
    keep: int = 0,
) -> WrittenFile:
    """Return a regular file of this machine's as what the program wrote at ``inside``."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(most)
        digest = sparse_digest(file.fileno(), 0, size)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest() if sums else ""
    lines = tuple(ignored.lines(head)) if size <= most and _is_text(head) else None
    events = event_files.NAME.fullmatch(inside)
    if events and (values := event_files.event_lines(path)) is not None:
        lines = tuple(ignored.lines("\n".join(values).encode()))
    if lines is None and evidence.contents and library_formats.is_such(head):
        with path.open("rb") as file:
            told = evidence.contents.get(hashlib.file_digest(file, "sha256").hexdigest())
        lines = tuple(ignored.lines("\n".join(told).encode(errors="surrogatepass"))) if told else None
    if lines is None and (rows := databases.database_lines(path)) is not None:
        lines = tuple(ignored.lines("\n".join(rows).encode()))
    return WrittenFile(
        path=general(events[1] if events else inside, evidence),
        size=size,
        digest=digest,
        lines=lines,
        tensors=tensors(path, lambda text: general(text, evidence)),
        content=head if lines is None and size <= min(keep, most) else b"",
        sha256=sha256,
    )
