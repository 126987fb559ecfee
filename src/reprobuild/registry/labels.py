"""What an image in a registry says of itself, without any of its layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ImageError, RegistryError
from ..host.machine import architecture
from ..oci.documents import parse_json
from ..render.labels import LABEL
from .client import Registry, Target


@dataclass(frozen=True, slots=True)
class Remote:
    """An image that is not here."""

    name: str
    labels: Mapping[str, str]
    size: int
    """Bytes of its layers, as a pull fetches them."""


def read_remote(target: Target) -> Remote:
    """Read an image's manifest and configuration. Raises `RegistryError`, and `ImageError` for one that is
    not for machines like this, or not reprobuild's.
    """
    registry = Registry(target)
    manifest = _json(registry.read_manifest(target.tag), target)
    if "manifests" in manifest:
        manifest = _json(registry.read_manifest(_of_this_machine(manifest, target)), target)
    try:
        config = _json(registry.read_blob(manifest["config"]["digest"]), target)
        labels = {str(k): str(v) for k, v in (config.get("config", {}).get("Labels") or {}).items()}
        size = sum(int(layer["size"]) for layer in manifest["layers"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RegistryError(f"{target}: its manifest is not one of an image") from None
    if LABEL + "lock" not in labels:
        raise ImageError(
            f"{target} is not an image made by reprobuild: it has no label {LABEL}lock",
            hint="name one that reprobuild made, or one that starts FROM it",
        )
    return Remote(str(target), labels, size)


def _json(data: bytes, target: Target) -> dict[str, Any]:
    try:
        found = parse_json(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RegistryError(f"{target}: the registry's answer is not the JSON of an image")
    return found


def _of_this_machine(manifests: Mapping[str, Any], target: Target) -> str:
    """Return the digest of the one for this machine in a list for several platforms."""
    there = {}
    for each in manifests["manifests"]:
        platform = each.get("platform") or {}
        there[f"{platform.get('os')}/{platform.get('architecture')}"] = str(each["digest"])
    wanted = f"linux/{architecture()}"
    if wanted not in there:
        raise ImageError(f"{target} is not for {wanted}; it is for {', '.join(sorted(there))}")
    return there[wanted]
