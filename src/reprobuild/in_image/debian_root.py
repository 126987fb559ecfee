"""Bring a root that dpkg has filled into the form of an image's base layer, and hold it against a digest.

``debian_root.py ROOT sha256:…``: takes out what differs by host or hour, as `layers/debian.py` does, and
exits with 1 when the files that are left have another digest (as `tree.py` makes it). Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator

LEFT_OUT = re.compile(
    r"dev/.+|run/.+|tmp/.+"
    r"|etc/(hostname|resolv\.conf|machine-id)"
    r"|etc/(passwd|group|shadow|gshadow|subuid|subgid)-"
    r"|var/cache/(apt/.+|ldconfig/.+|debconf/.+-old)"
    r"|var/lib/apt/(lists|mirrors|periodic)/.+|var/lib/dpkg/(lock.*|.+-old)"
)
LOG = re.compile(r"var/log/.+")
SOURCES = "etc/apt/sources.list"
SOURCES_TEXT = b"""\
# The Debian packages of this image are locked. More of them: apt = ["..."] in the image's request.
# In an image built on this one, apt can take more from a mirror: write these two lines here, with your mirror
# for MIRROR, and for RELEASE the name in /etc/os-release (VERSION_CODENAME).
#   deb https://MIRROR/debian RELEASE main
#   deb https://MIRROR/debian-security RELEASE-security main
"""


def walk(root: str, below: str = "") -> Iterator[str]:
    """Give all paths below a folder, relative to it, a folder before its files; links are not followed."""
    for name in sorted(os.listdir(f"{root}/{below}")):  # noqa: PTH208 -- plain strings: half the time
        path = f"{below}/{name}" if below else name
        yield path
        if stat.S_ISDIR(os.lstat(f"{root}/{path}").st_mode):
            yield from walk(root, path)


def clean(root: str) -> None:
    """Take out what differs by host or hour."""
    for path in list(walk(root)):
        place = f"{root}/{path}"
        if not os.path.lexists(place):
            continue
        mode = os.lstat(place).st_mode
        if LEFT_OUT.fullmatch(path) and stat.S_ISDIR(mode):
            shutil.rmtree(place)
        elif LEFT_OUT.fullmatch(path) or (LOG.fullmatch(path) and not stat.S_ISDIR(mode)):
            os.unlink(place)  # noqa: PTH108 -- as above
        elif stat.S_ISREG(mode) and (path == SOURCES or path.endswith(".pyc")):
            with open(place, "rb+") as file:  # noqa: PTH123 -- as above
                old = file.read()
                file.seek(0)
                file.write(content(path, old))
                file.truncate()


def content(path: str, data: bytes) -> bytes:
    """Return what a file holds in the image."""
    if path == SOURCES:
        return SOURCES_TEXT
    if path.endswith(".pyc") and data[4:8] == bytes(4):
        # Bytecode made for a time stamp, which the layer changes: "unchecked-hash" (PEP 552).
        return data[:4] + (1).to_bytes(4, "little") + bytes(8) + data[16:]
    return data


def digest(root: str) -> str:
    """Return ``sha256:…`` over path, type, mode, owner and content of every file."""
    found = hashlib.sha256()
    for path in sorted(walk(root)):
        found.update(
            "\0".join((path, *_facts(f"{root}/{path}"))).encode("utf-8", "surrogateescape") + b"\0\n"
        )
    return "sha256:" + found.hexdigest()


def _facts(place: str) -> tuple[str, str, str, str]:
    """Return kind, mode, owner, content."""
    status = os.lstat(place)
    mode, owner = f"{stat.S_IMODE(status.st_mode):o}", f"{status.st_uid}:{status.st_gid}"
    if stat.S_ISLNK(status.st_mode):
        return "link", "777", "0:0", os.readlink(place)  # noqa: PTH115 -- as above
    if stat.S_ISDIR(status.st_mode):
        return "dir", mode, owner, "-"
    if not stat.S_ISREG(status.st_mode):
        return "other", mode, owner, ""
    with open(place, "rb") as file:  # noqa: PTH123 -- as above
        found = hashlib.sha256()
        while chunk := file.read(1 << 18):  # hashlib.file_digest is of Python 3.11
            found.update(chunk)
    return "file", mode, owner, found.hexdigest()


def main() -> None:
    """See the top of the file."""
    root, expected = sys.argv[1].rstrip("/"), sys.argv[2]
    clean(root)
    if (found := digest(root)) != expected:
        sys.exit(f"the Debian root is not the one of the lock: its files are {found}, not {expected}")


if __name__ == "__main__":
    main()
