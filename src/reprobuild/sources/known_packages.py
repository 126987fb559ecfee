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
"""A name that code imports, or that people use, in lower case → the package that has it."""

OFTEN_ASKED_FOR: tuple[str, ...] = tuple(_DATA["often-asked-for"]["names"])
"""Packages beside PyTorch that requests name most."""

HEADERS: Mapping[str, str] = _DATA["debian"]["headers"]
"""A header → the Debian package that has it."""

PROGRAMS: Mapping[str, str] = _DATA["debian"]["programs"]
"""A program → the Debian package that has it."""

TOGETHER: Mapping[str, tuple[str, ...]] = {
    name: tuple(packages) for name, packages in _DATA["debian"]["together"].items()
}
"""A package whose build asks for several Debian packages, one after the other → all of them."""

FFMPEG: tuple[str, ...] = tuple(_DATA["debian"]["ffmpeg"]["packages"])
"""The Debian packages of FFmpeg's libraries: who asks for one asks for more."""


def package_of_module(module: str) -> str:
    """Return the package that has a module."""
    return IMPORTED_AS.get(module.lower(), module.lower().replace("_", "-"))
