"""Files that a run wrote: their bytes, their text without times, their tensors."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .checkpoints import tensors
from .evidence import Evidence
from .ignored import Ignored
from .sparse import sparse_digest
from .texts import general

MOST_FILES = 20_000
MOST_TEXT = 1 << 20
"""Bytes of a file whose lines are compared where its bytes differ."""

LEFT_OUT: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("bytecode", re.compile(r"(?:.*/)?__pycache__(?:/.*)?|.*\.pyc")),
    (
        "TensorBoard's event files, which have a clock time in every record",
        re.compile(r".*events\.out\.tfevents\..*"),
    ),
    ("caches in ~/.cache, ~/.triton and ~/.nv", re.compile(r"(?:.*/)?\.(?:cache|triton|nv)(?:/.*)?")),
    ("/tmp, /var/tmp, /run, /dev, /proc and /sys", re.compile(r"/(?:tmp|var/tmp|run|dev|proc|sys)(?:/.*)?")),  # noqa: S108
    ("the recorder's own", re.compile(r".*/reprobuild_twice(?:\.pth|/.*)?")),
    ("/etc of the container", re.compile(r"/etc(?:/.*)?")),
)
"""What is not compared, and which paths that means."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenFile:
    """A file that a run wrote, or removed."""

    path: str
    """In the container; what differs in every run by its nature is replaced by what it is."""
    size: int
    digest: str
    """That of its bytes, see `sparse_digest`; ``removed``, or where a link leads."""
    lines: tuple[str, ...] | None
    """Of a text, without those that are ignored."""
    tensors: Mapping[str, str]
    sha256: str = ""
    """SHA-256 of its bytes in hex; empty: not requested, or not a regular file."""

    def meaning(self, evidence: Evidence) -> str:
        """Return a digest of what counts: a text without times, a checkpoint's tensors, else the bytes."""
        if self.lines is None and not self.tensors:
            return self.digest
        lines = [general(line, evidence) for line in self.lines or ()]
        compared = lines if self.lines is not None else sorted(self.tensors.items())
        return hashlib.sha256(json.dumps(compared).encode()).hexdigest()


def is_left_out(path: str) -> bool:
    """Whether a path in the container is not compared."""
    return any(pattern.fullmatch(path) for _, pattern in LEFT_OUT)


def written_files(
    folder: Path, destination: str, evidence: Evidence, ignored: Ignored, *, sums: bool = False
) -> tuple[list[WrittenFile], bool]:
    """Return the files below a folder that was written over another, and whether these are all.

    ``sums``: with the SHA-256 of each. A link is not followed. A device with the numbers 0, 0 is overlayfs's
    mark for a file that was removed.
    """
    found: list[WrittenFile] = []
    for path in _below(folder):
        inside = f"{destination.rstrip('/')}/{path.relative_to(folder)}"
        if is_left_out(inside) or ignored.has_file(inside):
            continue
        if len(found) >= MOST_FILES:
            return found, False
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            found.append(written_file(path, inside, evidence, ignored, sums=sums))
        else:
            is_link = stat.S_ISLNK(status.st_mode)
            is_removed = stat.S_ISCHR(status.st_mode) and status.st_rdev == 0
            target = f"a link to {path.readlink()}" if is_link else "removed" if is_removed else "no file"
            found.append(
                WrittenFile(path=general(inside, evidence), size=0, digest=target, lines=None, tensors={})
            )
    return found, True


def _below(folder: Path) -> Iterator[Path]:
    """Yield everything but folders, those of a folder before its subfolders. Follows no links.

    `os.walk` calls itself for each level before Python 3.12, and a program can leave thousands.
    """
    todo = [folder]
    while todo:
        with os.scandir(todo.pop()) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        yield from (Path(each.path) for each in found if not each.is_dir(follow_symlinks=False))
        todo += [Path(each.path) for each in reversed(found) if each.is_dir(follow_symlinks=False)]


def written_file(
    path: Path, inside: str, evidence: Evidence, ignored: Ignored, *, sums: bool = False
) -> WrittenFile:
    """Return a regular file of this machine's as what the program wrote at ``inside``."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(MOST_TEXT)
        digest = sparse_digest(file.fileno(), 0, size)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest() if sums else ""
    text = size <= MOST_TEXT and b"\0" not in head
    return WrittenFile(
        path=general(inside, evidence),
        size=size,
        digest=digest,
        lines=tuple(ignored.lines(head)) if text else None,
        tensors=tensors(path, lambda text: general(text, evidence)),
        sha256=sha256,
    )
