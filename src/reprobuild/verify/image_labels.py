"""Labels of an image in a registry, read without its layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ImageError, RegistryError
from ..host.machine import architecture
from ..oci.documents import descriptors, parse_json
from ..oci.registry.client import Registry, Target
from ..render.labels import LABEL


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
    manifest = parsed(read_image_manifest(registry, target.tag, str(target)), str(target))
    try:
        config = parsed(registry.read_blob(manifest["config"]["digest"]), str(target))
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


def read_image_manifest(registry: Registry, wanted: str, name: str) -> bytes:
    """Return the manifest of a tag or digest; of a list, that of the image for this machine.

    ``name`` is what messages call it. Raises `RegistryError`, `ImageError`.
    """
    document = registry.read_manifest(wanted)
    if "manifests" in parsed(document, name):
        return registry.read_manifest(_of_this_machine(document, name))
    return document


def parsed(data: bytes, name: str) -> dict[str, Any]:
    """Return a document of an image. Raises `RegistryError`."""
    try:
        found = parse_json(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RegistryError(f"{name}: the registry's answer is not the JSON of an image")
    return found


def _of_this_machine(index: bytes, name: str) -> str:
    """Return the digest of the image for this machine in a list for several platforms."""
    there = {}
    try:
        for each in descriptors(index):
            platform = each.get("platform")
            if isinstance(platform, dict):
                there[f"{platform.get('os')}/{platform.get('architecture')}"] = str(each["digest"])
    except ValueError as error:
        raise RegistryError(f"{name}: its list of platforms is not valid: {error}") from None
    wanted = f"linux/{architecture()}"
    if wanted not in there:
        raise ImageError(f"{name} is not for {wanted}; it is for {', '.join(sorted(there)) or 'no platform'}")
    return there[wanted]
