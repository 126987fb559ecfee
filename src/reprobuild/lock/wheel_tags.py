"""Tags of the wheels that an installer in the image takes (PEP 425, PEP 600). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.tags import Tag, compatible_tags, cpython_tags

from .model import Lock
from .packages import DebianPackage

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Debian's name of an architecture → that of Python and wheels."""
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
_ANY_GLIBC = (2, 99)


def wheel_tags(python: str, architecture: str, glibc: tuple[int, int]) -> dict[Tag, int]:
    """Return each tag with its rank, the closest first, for a minor version of CPython.

    ``architecture`` is Debian's name, ``glibc`` the version of the image's C library.
    """
    major, minor = (int(part) for part in python.split("."))
    platforms = list(_platforms(MACHINES[architecture], glibc))
    tags = [
        *cpython_tags((major, minor), platforms=platforms),
        *compatible_tags((major, minor), f"cp{major}{minor}", platforms),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def tags_of(lock: Lock) -> dict[Tag, int]:
    """Return the tags that fit a lock, of any C library where a base image brings it."""
    glibc = _locked_glibc(lock.debian) or _ANY_GLIBC
    return wheel_tags(lock.request.python, lock.platform.removeprefix("linux/"), glibc)


def glibc_of(packages: Sequence[DebianPackage]) -> tuple[int, int]:
    """Return the version of the C library among locked Debian packages, which always have it."""
    found = _locked_glibc(packages)
    assert found is not None, "no C library is locked"
    return found


def _locked_glibc(packages: Sequence[DebianPackage]) -> tuple[int, int] | None:
    version = next((package.version for package in packages if package.name == "libc6"), "")
    form = re.match(r"(?:[0-9]+:)?([0-9]{1,3})\.([0-9]{1,3})", version)
    return None if form is None else (int(form[1]), int(form[2]))


def _platforms(machine: str, glibc: tuple[int, int]) -> Iterator[str]:
    oldest = 5 if machine == "x86_64" else 17
    for minor in range(glibc[1], oldest - 1, -1):
        yield f"manylinux_2_{minor}_{machine}"
        if (2, minor) in _LEGACY:
            yield f"{_LEGACY[2, minor]}_{machine}"
    yield f"linux_{machine}"
