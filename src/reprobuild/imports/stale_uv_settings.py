"""Settings of a uv.lock that are not those of the project beside it.

A variable or a file of uv's own may set them, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from packaging.utils import canonicalize_name

from ..request.model import PYTHONS
from ..request.toml_reader import table_in
from ..resolve.target import holds
from .common import marker_of
from .target_system import target

_OPTIONS = {
    "resolution": ("resolution-mode", "highest"),
    "prerelease": ("prerelease-mode", "if-necessary-or-explicit"),
    "fork-strategy": ("fork-strategy", "requires-python"),
}
"""Keys of tool.uv, each with the key of a lock's options and the default of both."""

_MARKED = {"environments": "supported-markers", "required-environments": "required-markers"}
"""Key of tool.uv → key of a lock."""

_NAMES = ("linux darwin win32", "Linux Darwin Windows", "posix posix nt")
_SYSTEMS = [
    {"sys_platform": key, "platform_system": name, "os_name": kind, "platform_machine": machine}
    for key, name, kind in zip(*(words.split() for words in _NAMES), strict=True)
    for machine in ("x86_64", "aarch64", "arm64", "AMD64", "ARM64")
]
"""Markers of the systems that locks are made for."""


def other_settings(
    uv: Mapping[str, Any], lock: Mapping[str, Any], name: str, packages: Collection[str]
) -> Iterator[str]:
    """Yield the keys of a ``tool.uv`` whose value is not the one that a lock was made with.

    ``name`` is the project's; ``packages`` are the names of those in the lock.
    """
    options, manifest = table_in(lock, "options"), table_in(lock, "manifest")
    for key, (name_there, default) in _OPTIONS.items():
        if uv.get(key, default) != options.get(name_there, default):
            yield key
    metadata = uv.get("dependency-metadata")
    present = {
        "exclude-newer": (uv.get("exclude-newer"), options.get("exclude-newer")),
        "exclude-newer-package": (uv.get("exclude-newer-package"), options.get("exclude-newer-package")),
        # uv looks at what the lock has of it alone.
        "dependency-metadata": (
            [each for each in metadata if canonicalize_name(each["name"]) in packages] if metadata else None,
            manifest.get("dependency-metadata"),
        ),
        "build-constraint-dependencies": (
            uv.get("build-constraint-dependencies"),
            manifest.get("build-constraints"),
        ),
    }
    for key, (now, then) in present.items():
        if bool(now) is not bool(then) and not (key == "dependency-metadata" and then and metadata):
            yield key
    for key, name_there in _MARKED.items():
        if _where(uv.get(key, [])) != _where(lock.get(name_there, [])):
            yield key
    asked, locked = (_conflicts(table.get("conflicts", []), name) for table in (uv, lock))
    if asked - locked or (locked and not asked and not manifest.get("members")):
        yield "conflicts"


def _where(markers: object) -> list[bool]:
    """Return for which Pythons and systems one of some markers is true; all if there is none."""
    texts = markers if isinstance(markers, list) else [markers]
    every = [marker_of(text, "tool.uv") for text in texts]
    return [
        not every or any(holds(each, {**target(python).markers, **system}) for each in every)
        for python in PYTHONS
        for system in _SYSTEMS
    ]


def _conflicts(listed: object, name: str) -> set[frozenset[tuple[str, ...]]]:
    """Return the sets of extras and groups, with their packages, that exclude each other."""
    return {
        frozenset(
            (canonicalize_name(each.get("package", name)), key, canonicalize_name(each[key]))
            for each in one
            for key in {"extra", "group"} & each.keys()
        )
        for one in (listed if isinstance(listed, list) else ())
    }
