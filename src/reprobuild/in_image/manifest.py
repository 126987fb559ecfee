"""Write the manifest of the files below some folders, each named by a hash, to standard output.

``manifest.py /opt/venv /usr``: a line a path, sorted by path, with tabs between: kind (``file``, ``link`` or
``dir``), permissions in octal, content (a file's sha256, a link's target, ``-`` for a folder), path. Raises
OSError for what cannot be read, and ValueError for a name with a tab or a newline. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator


def walk(root: str) -> Iterator[str]:
    """Give a folder and all that is below it; links are not followed."""
    yield root
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from walk(entry.path)
            else:
                yield entry.path


def line(path: str) -> str:
    """Return the manifest's line for a path."""
    found = os.lstat(path)
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        fields = ("link", "777", os.readlink(path), path)  # noqa: PTH115 -- as below
    elif stat.S_ISDIR(found.st_mode):
        fields = ("dir", f"{mode:o}", "-", path)
    else:
        with open(path, "rb") as file:  # noqa: PTH123 -- paths are plain strings here: half the time at 60,000 files
            fields = ("file", f"{mode:o}", hashlib.file_digest(file, "sha256").hexdigest(), path)
    if any("\t" in field or "\n" in field for field in fields):
        raise ValueError(f"{path!r} has a tab or a newline in its name")
    return "\t".join(fields)


def main() -> None:
    """Write the lines for the folders given as arguments."""
    paths = sorted(path for root in sys.argv[1:] for path in walk(root))
    for path in paths:
        sys.stdout.buffer.write(line(path).encode("utf-8", "surrogateescape") + b"\n")


if __name__ == "__main__":
    main()
