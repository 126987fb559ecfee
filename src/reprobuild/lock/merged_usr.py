"""Whether /bin and /lib of a Debian root are links into /usr before its packages are installed. Pure.

Debian 12 requires a merged /usr (https://wiki.debian.org/UsrMerge). Either the package usrmerge converts the
root, for which it takes Perl and its modules, or whoever makes the root begins with the links, and
usr-is-merged finds them there.
"""

from __future__ import annotations

from .model import Lock

CONVERTS, IS_MERGED = "usrmerge", "usr-is-merged"

_FOLDERS = ("bin", "sbin", "lib")
_MORE_FOLDERS = {"amd64": ("lib64",)}
"""By architecture: where its binaries look for the dynamic linker beside /lib."""


def links_into_usr(lock: Lock) -> tuple[str, ...]:
    """Return the folders at the top of the root that are links into /usr from the start; empty: none."""
    names = {package.name for package in lock.debian}
    if lock.base is not None or IS_MERGED not in names or CONVERTS in names:
        return ()
    return (*_FOLDERS, *_MORE_FOLDERS.get(lock.platform.partition("/")[2], ()))
