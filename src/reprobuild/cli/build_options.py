"""Flags of a request's table ``build``: settings for building source packages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from packaging.utils import canonicalize_name

from ..errors import RequestError

NAMES = {"multiple": True, "metavar": "NAME"}
_PACKAGES = {"multiple": True, "metavar": "PACKAGE"}

FLAGS: tuple[tuple[str, Any, str], ...] = (
    ("--build-apt", NAMES, "A Debian package for builds of source packages alone; may be repeated."),
    (
        "--build-torch",
        _PACKAGES,
        "A source package whose build gets the lock's own PyTorch; may be repeated.",
    ),
    ("--build-cuda", _PACKAGES, "A source package whose build gets nvcc; may be repeated."),
    (
        "--build-requires",
        {"multiple": True, "metavar": "PACKAGE:REQUIREMENT"},
        "A Python package that the build of a source package needs too; may be repeated.",
    ),
    (
        "--build-env",
        {"multiple": True, "metavar": "PACKAGE:NAME=VALUE"},
        "A variable of the build of a source package; may be repeated.",
    ),
)


def build_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table that flags say; empty without one. Raises `RequestError` that names the flag."""
    tables: dict[str, dict[str, Any]] = {}

    def table_of(name: str) -> dict[str, Any]:
        return tables.setdefault(canonicalize_name(name), {})

    for key in ("torch", "cuda"):
        for name in given.get(f"build_{key}", ()):
            table_of(name)[key] = True
    for name, text in _pairs(given, "requires", "flash-attn:packaging"):
        table_of(name).setdefault("requires", []).append(text)
    for name, text in _pairs(given, "env", "flash-attn:MAX_JOBS=2"):
        variable, equals, value = text.partition("=")
        if not equals:
            raise _malformed("env", f"{name}:{text}", "flash-attn:MAX_JOBS=2")
        table_of(name).setdefault("env", {})[variable] = value
    return {**({"apt": list(given["build_apt"])} if given.get("build_apt") else {}), **tables}


def flag_of(key: str) -> str:
    """Return the flag that says a key of the table: ``build.flash-attn.env.A`` is of ``--build-env``."""
    found = [part for part in re.split(r"[.\[]", key) if part in ("apt", "cuda", "requires", "env")]
    return f"--build-{found[-1] if found else 'torch'}"


def _pairs(given: Mapping[str, Any], kind: str, example: str) -> Sequence[tuple[str, str]]:
    found = []
    for text in given.get(f"build_{kind}", ()):
        name, colon, rest = text.partition(":")
        if not colon or not name.strip() or not rest:
            raise _malformed(kind, text, example)
        found.append((name.strip(), rest))
    return found


def _malformed(kind: str, text: str, example: str) -> RequestError:
    return RequestError(
        f"--build-{kind}: {text!r} does not say for which package", hint=f"write it as {example}"
    )
