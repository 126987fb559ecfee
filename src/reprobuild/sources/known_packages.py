"""Package names by the names that people, code and compilers use, from ``known_packages.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

_DATA: Mapping[str, Any] = tomllib.loads(
    (resources.files(__package__) / "known_packages.toml").read_text("utf-8")
)

IMPORTED_AS: Mapping[str, str] = _DATA["imported-as"]
"""Package of each name that code imports or that people use, in lower case."""

OFTEN_ASKED_FOR: tuple[str, ...] = tuple(_DATA["often-asked-for"]["names"])
"""Packages that requests name most, apart from PyTorch."""

HEADERS: Mapping[str, str] = _DATA["debian"]["headers"]
"""Debian package of each C header."""

PROGRAMS: Mapping[str, str] = _DATA["debian"]["programs"]
"""Debian package of each program."""

TOGETHER: Mapping[str, tuple[str, ...]] = {
    name: tuple(packages) for name, packages in _DATA["debian"]["together"].items()
}
"""Debian packages of builds that report one missing package after the other."""

FFMPEG: tuple[str, ...] = tuple(_DATA["debian"]["ffmpeg"]["packages"])
"""The Debian packages of FFmpeg's libraries: who asks for one asks for more."""


def package_of_module(module: str) -> str:
    """Return the package that has a module."""
    return IMPORTED_AS.get(module.lower(), module.lower().replace("_", "-"))
