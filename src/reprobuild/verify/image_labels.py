"""Labels of an image in a registry, read without its layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ImageError, RegistryError
from ..host.console import first_of
from ..host.machine import architecture
from ..oci.documents import INDEX_TYPE, MANIFEST_TYPE, descriptors, image_json
from ..oci.registry.client import Registry, Target
from ..render.labels import LABEL

_DOCKER = "application/vnd.docker.distribution.manifest"
_IMAGES = (MANIFEST_TYPE, f"{_DOCKER}.v2+json")
_LISTS = (INDEX_TYPE, f"{_DOCKER}.list.v2+json")


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
    if not _is_list(document, name):
        return document, ()
    digest, others = _of_this_machine(document, name)
    document = registry.read_manifest(digest)
    if _is_list(document, f"{name}, {digest[:19]}"):
        raise RegistryError(f"{name}: its image for this machine is a list of images again")
    return document, others


def _is_list(document: bytes, name: str) -> bool:
    """Whether a document is a list of images. Raises `RegistryError` where it depends on the tool.

    What it is taken for hangs on the header of an answer, which nobody signs (CVE-2021-41190,
    https://github.com/opencontainers/distribution-spec/security/advisories/GHSA-mc8v-mgrf-8f4m). Go reads
    keys in any case.
    """
    found = image_json(document, name)
    keys = {key.casefold() for key in found}
    is_list = "manifests" in found
    other_type = found.get("mediaType") in (_IMAGES if is_list else _LISTS)
    if other_type or ("manifests" in keys and (not is_list or keys & {"layers", "config"})):
        raise RegistryError(
            f"{name} can be read as an image and as a list of images",
            hint="somebody made it to deceive; do not use it",
        )
    return is_list


def _of_this_machine(index: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the digest of the image for this machine in a list for several platforms, and the others."""
    there: dict[str, set[str]] = {}
    try:
        for each in descriptors(index):
            platform = each.get("platform")
            if isinstance(platform, dict):
                of = f"{platform.get('os')}/{platform.get('architecture')}"
                there.setdefault(of, set()).add(str(each["digest"]))
    except ValueError as error:
        raise RegistryError(f"{name}: its list of platforms is not valid: {error}") from None
    wanted = f"linux/{architecture()}"
    others = tuple(sorted(there.keys() - {wanted, "unknown/unknown"}))  # BuildKit's own documents
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
