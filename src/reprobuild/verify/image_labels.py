"""Labels of an image in a registry, read without its layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ImageError, RegistryError
from ..host.console import first_of
from ..host.machine import architecture
from ..oci.documents import IMAGE_TYPES, check_type, descriptors, image_json, is_list
from ..oci.registry.client import Registry, Target
from ..render.labels import LABEL
from ..request.table import JsonTable

_UNNAMED = "no platform"
_ATTESTATION = "unknown/unknown"
"""Of BuildKit's own documents."""
_SAME = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64"}
"""Names of architectures that containerd reads as others (containerd/platforms, database.go)."""


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
    document, _ = read_image_manifest(registry, target.tag, str(target))
    manifest = image_json(document, str(target))
    try:
        config = image_json(registry.read_blob(manifest["config"]["digest"]), str(target))
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


def read_image_manifest(registry: Registry, wanted: str, name: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the manifest of a tag or digest; of a list, that of the image for this machine, and the other
    platforms in it.

    ``name`` is what messages call it. Raises `RegistryError`, `ImageError`.
    """
    document = registry.read_manifest(wanted)
    if not is_list(document, name):
        return document, ()
    digest, others = _of_this_machine(document, name)
    document = registry.read_manifest(digest)
    if is_list(document, f"{name}, {digest[:19]}"):
        raise RegistryError(f"{name}: its image for this machine is a list of images again")
    return document, others


def _of_this_machine(index: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the digest of the image for this machine in a list for several platforms, and the others."""
    there: dict[str, set[str]] = {}
    wanted = f"linux/{architecture()}"
    try:
        for each in descriptors(index):
            if (of := _platform(each)) == wanted:
                check_type(each, *IMAGE_TYPES)
            there.setdefault(of, set()).add(str(each["digest"]))
    except ValueError as error:
        raise RegistryError(f"{name}: its list of platforms is not valid: {error}") from None
    others = tuple(sorted(there.keys() - {wanted, _ATTESTATION}))
    if wanted not in there:
        raise ImageError(f"{name} is not for {wanted}; it is for {first_of(others, 9) or 'no platform'}")
    if len(found := sorted(there[wanted])) > 1:
        # Docker and Podman take the first, or the one whose variant suits their machine best.
        raise ImageError(
            f"{name} has {len(found)} images for {wanted}, and tools differ in which they take:"
            f" {first_of(found, 3)}",
            hint="name one of them by its digest: REGISTRY/NAME@DIGEST",
        )
    return found[0], others


def _platform(entry: Mapping[str, Any]) -> str:
    """Return the platform of an entry in a list, as tools in Go read it. Raises ValueError."""
    if entry.get("platform") is None:
        return _UNNAMED
    platform = JsonTable(entry, "manifests").table("platform")
    system, machine = (platform.value(key, str, "").casefold() for key in ("os", "architecture"))
    if not system and not machine:
        return _UNNAMED
    return f"{system}/{_SAME.get(machine, machine)}"
