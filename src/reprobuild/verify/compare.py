"""Differences between the files and settings of two images, by path and kind. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..oci.archive_manifest import PLATFORM
from ..oci.file_tree import ImageTree, capability
from ..oci.tar_writer import Record

_SETTINGS = (
    *("Cmd", "Entrypoint", "Healthcheck", "OnBuild", "Shell", "StopSignal", "User", "Volumes", "WorkingDir"),
    PLATFORM,
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. ``first`` and ``second`` are the values of each image; empty: missing."""

    path: str
    """A file's path, or the name of a setting: ``Env PYTHONHASHSEED``."""
    kind: str
    """``missing``, ``type``, ``mode``, ``owner``, ``content``, ``attributes`` or ``setting``; of a check also
    ``second copy``, ``runs at start``, ``shadows``, ``added`` or ``release``."""
    first: str
    second: str

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.path}: {self.kind}: {self.first or 'none'} → {self.second or 'none'}"


def compare(first: ImageTree, second: ImageTree) -> list[Difference]:
    """Return all differences: files by path, then settings by name.

    Without what one of the trees cannot say; see `ImageTree.replaced`.
    """
    found: list[Difference] = []
    unknown = {*first.unknown, *second.unknown}
    every = not (first.replaced or second.replaced)
    for path in sorted((first.files.keys() | second.files.keys()) - unknown):
        found += _of_file(f"/{path}", first.files.get(path), second.files.get(path), every=every)
    one, other = dict(settings(first.config)), dict(settings(second.config))
    if not (one.get(PLATFORM) and other.get(PLATFORM)):  # not every way to read an image tells it
        one.pop(PLATFORM, None)
        other.pop(PLATFORM, None)
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            found.append(Difference(name, "setting", one.get(name, ""), other.get(name, "")))
    return found


def settings(config: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the settings of an image's configuration by name, in one form for all engines."""
    found: dict[str, str] = {}
    odd: set[str] = set()
    for line in config.get("Env") or ():
        name, equals, value = line.partition("=")
        if not equals or f"Env {name}" in found:
            odd.add(name)
        found[f"Env {name}"] = value
    if odd:  # programs take the first or the last of two (getenv(3)), and engines drop one without a value
        found["Env"] = json.dumps([line for line in config["Env"] if line.partition("=")[0] in odd])
    for name, value in (config.get("Labels") or {}).items():
        # buildah signs its work with its own version.
        if name != "io.buildah.version":
            found[f"Label {name}"] = value
    for name in _SETTINGS:
        if value := config.get(name):
            found[name] = json.dumps(value, sort_keys=True) if isinstance(value, dict) else str(value)
    return found


def _of_file(path: str, first: Record | None, second: Record | None, *, every: bool) -> list[Difference]:
    """``every``: whether all extended attributes count, or the capabilities alone."""
    if first is None or second is None:
        return [Difference(path, "missing", first.kind if first else "", second.kind if second else "")]
    if first.kind != second.kind:
        return [Difference(path, "type", first.kind, second.kind)]
    pairs = {
        "mode": (f"{first.mode:o}", f"{second.mode:o}"),
        "owner": (first.owner, second.owner),
        "content": (first.content, second.content),
        "attributes": _attributes(first, second, every=every),
    }
    return [Difference(path, kind, one, other) for kind, (one, other) in pairs.items() if one != other]


def _attributes(first: Record, second: Record, *, every: bool) -> tuple[str, str]:
    one, other = (each.attributes if every else capability(each) for each in (first, second))
    return one.replace("\n", " "), other.replace("\n", " ")
