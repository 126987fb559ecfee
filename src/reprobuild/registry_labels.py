"""What an image in a registry says of itself, without any of its layers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .archives import architecture
from .errors import ImageError, RegistryError
from .image_config import LABEL
from .layers.image import sha256
from .registry import Registry, Target


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
    manifest = _read(registry, target, f"manifests/{target.tag}")
    if "manifests" in manifest:
        manifest = _read(registry, target, f"manifests/{_of_this_machine(manifest, target)}")
    try:
        config = _read(registry, target, f"blobs/{manifest['config']['digest']}")
        labels = {str(k): str(v) for k, v in (config.get("config", {}).get("Labels") or {}).items()}
        size = sum(int(layer["size"]) for layer in manifest["layers"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RegistryError(f"{target}: its manifest is not one of an image") from None
    if LABEL + "lock" not in labels:
        raise ImageError(
            f"{target} is no image of reprobuild's: it has no label {LABEL}lock",
            hint="name one that reprobuild made, or one that starts FROM it",
        )
    return Remote(str(target), labels, size)


def _read(registry: Registry, target: Target, path: str) -> dict[str, Any]:
    try:
        content = registry.read(path)
        digest = path.partition("/")[2]
        if digest.startswith("sha256:") and sha256(content) != digest:
            raise RegistryError(
                f"{target}: other bytes than {digest} came for it",
                hint="someone on the way may change them; do not use it",
            )
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RegistryError(f"{target}: {path.partition('/')[0]} of it cannot be read as JSON")
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
