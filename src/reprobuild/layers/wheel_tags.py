"""Whether pip would install a wheel in the image, by the tags in its name (PEP 425). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from ..lock.model import Lock
from ..lock.packages import DebianPackage

_MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_LEGACY = {"1": 5, "2010": 12, "2014": 17}
"""The C library's minor version that these names of PEP 513, 571 and 599 mean."""
_PLATFORM = re.compile(r"(?:linux|manylinux(?:(1|2010|2014)|_2_([0-9]{1,3})))_(.+)")


def fits(filename: str, lock: Lock) -> bool:
    """Return whether a wheel is for the lock's Python, machine and, where it is locked, C library."""
    major, minor = map(int, lock.request.python.split("."))
    tags = parse_wheel_filename(filename)[3]
    glibc = _glibc(lock.debian)
    platforms = [p for p in {tag.platform for tag in tags} if _is_for(p, _MACHINES[lock.platform], glibc)]
    interpreter = f"cp{major}{minor}"
    # An empty list would mean the platforms of this machine.
    known = {
        *cpython_tags((major, minor), [interpreter], platforms or ["none"]),
        *compatible_tags((major, minor), interpreter, platforms or ["none"]),
    }
    return not known.isdisjoint(tags)


def _is_for(platform: str, machine: str, glibc: int | None) -> bool:
    found = _PLATFORM.fullmatch(platform)
    if found is None or found[3] != machine:
        return False
    return glibc is None or (_LEGACY[found[1]] if found[1] else int(found[2] or 0)) <= glibc


def _glibc(packages: Sequence[DebianPackage]) -> int | None:
    """Return the minor version of the locked C library; None where a base image brings it."""
    return next(_minors(packages), None)


def _minors(packages: Sequence[DebianPackage]) -> Iterator[int]:
    for package in packages:
        found = re.match(r"(?:[0-9]+:)?2\.([0-9]{1,3})", package.version)
        if package.name == "libc6" and found:
            yield int(found[1])
