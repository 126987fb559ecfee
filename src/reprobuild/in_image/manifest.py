"""Write the manifest of the files below some folders, each named by a hash, to standard output.

``manifest.py /opt/venv /usr``: a line a path, sorted by path, with tabs between: kind (``file``, ``link`` or
``dir``), permissions in octal, content (a file's sha256, a link's target, ``-`` for a folder), path. A line
with a name that would break it starts with a backslash, as in GNU's sha256sum: in it, control characters,
line separators of Unicode and backslashes are written as ``\\u000a``. Raises OSError for what cannot be read,
and ValueError for a name that is reprobuild's own. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import re
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


def reserved(path: str) -> bool:
    """Whether an absolute path in the image is reprobuild's own.

    Python would import a file, package, library or bytecode of the hook's name in place of the hook, and the
    self-test what lies beside it. In the environment, so is what Python runs at every start.
    """
    return _RESERVED.fullmatch(path) is not None


def written(*fields: str) -> str:
    """Return some fields as one line, without its end; `read` gives them back."""
    if not any(_BREAKS.search(field) for field in fields):
        return "\t".join(fields)
    return "\\" + "\t".join(_ESCAPED.sub(lambda m: f"\\u{ord(m[0]):04x}", field) for field in fields)


def read(manifest: bytes) -> Iterator[tuple[str, str, str, str]]:
    """Give kind, permissions, content, path of each line. Raises ValueError for what `written` never does."""
    *lines, rest = manifest.split(b"\n")
    if rest:
        raise ValueError(f"{rest[:99]!r} is not a line of a manifest: it has no end")
    for raw in lines:
        text = raw.decode("utf-8", "surrogateescape")
        if not text.startswith("\\"):
            fields = text.split("\t")
        else:
            fields = [
                re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), f) for f in text[1:].split("\t")
            ]
        if written(*fields) != text:
            raise ValueError(f"{text!r} is not a line of a manifest")
        kind, mode, content, path = fields
        yield kind, mode, content, path


def line(path: str) -> str:
    """Return the manifest's line for a path."""
    found = os.lstat(path)
    mode = stat.S_IMODE(found.st_mode)
    if reserved(path) and not _OURS.fullmatch(path):
        raise ValueError(f"{path!r} is a name of reprobuild's own")
    if stat.S_ISLNK(found.st_mode):
        return written("link", "777", os.readlink(path), path)  # noqa: PTH115 -- as below
    if stat.S_ISDIR(found.st_mode):
        return written("dir", f"{mode:o}", "-", path)
    with open(path, "rb") as file:  # noqa: PTH123 -- paths are plain strings here: half the time at 60,000 files
        digest = hashlib.sha256()
        while chunk := file.read(1 << 18):  # hashlib.file_digest is of Python 3.11
            digest.update(chunk)
    return written("file", f"{mode:o}", digest.hexdigest(), path)


_SITE = r"/opt/venv/lib/python3[^/]*/site-packages"
_OURS = re.compile(rf".*{_SITE}/reprobuild(\.pth|_hook\.py)")
_RESERVED = re.compile(
    r"/opt/reprobuild(/.*)?|(.*/)?(reprobuild_hook(\.[^/]*)?|reprobuild\.pth)(/.*)?"
    rf"|{_SITE}/(__pycache__/)?(site|user)customize([./].*)?",
    re.DOTALL,
)
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]|^\\\\")
_ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\\\\]")


def main() -> None:
    """Write the lines for the folders given as arguments."""
    paths = sorted(path for root in sys.argv[1:] for path in walk(root))
    for path in paths:
        sys.stdout.buffer.write(line(path).encode("utf-8", "surrogateescape") + b"\n")


if __name__ == "__main__":
    main()
