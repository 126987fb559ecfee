"""JSON documents of the OCI image format, in canonical form. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import RegistryError
from ..request.json_reader import load_json
from ..request.table import JsonTable, shown
from .tar_writer import Layer

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
DOCKER_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST_TYPE = "application/vnd.docker.distribution.manifest.list.v2+json"
IMAGE_TYPES = (MANIFEST_TYPE, DOCKER_TYPE)
LIST_TYPES = (INDEX_TYPE, DOCKER_LIST_TYPE)
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
EMPTY = b"{}"
"""Configuration of a manifest that is not an image (image-spec, "Guidance for an Empty Descriptor")."""

LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'
"""The file ``oci-layout`` of a layout (image-spec, image-layout.md)."""

DOCUMENT_LIMIT = 4 << 20
"""Bytes of a manifest, an index or a configuration, as in Podman (containers/image, internal/iolimits)."""


@dataclass(frozen=True, slots=True)
class ImageDocuments:
    """The two JSON documents of an image."""

    manifest: bytes
    config: bytes

    @property
    def digest(self) -> str:
        """The image's digest: that of its manifest."""
        return sha256(self.manifest)


def image_documents(
    config: Mapping[str, Any], layers: Iterable[Layer], annotations: Mapping[str, str] | None = None
) -> ImageDocuments:
    """Return the documents of an image with a configuration and layers, the lowest first."""
    config_bytes = _json(config)
    manifest = {
        **({} if annotations is None else {"annotations": dict(annotations)}),
        "config": descriptor(config_bytes, CONFIG_TYPE),
        "layers": _layer_entries(layers),
        "mediaType": MANIFEST_TYPE,
        "schemaVersion": 2,
    }
    return ImageDocuments(_json(manifest), config_bytes)


def descriptor(data: bytes, media_type: str) -> dict[str, Any]:
    """Return the descriptor of a blob."""
    return {"digest": sha256(data), "mediaType": media_type, "size": len(data)}


def artifact_manifest(artifact_type: str, layers: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Return the manifest of blobs that are not an image."""
    return {
        "artifactType": artifact_type,
        "config": descriptor(EMPTY, EMPTY_TYPE),
        "layers": layers,
        "mediaType": MANIFEST_TYPE,
        "schemaVersion": 2,
        **more,
    }


def repacked(manifest: Mapping[str, Any], layers: Sequence[Layer]) -> bytes:
    """Return the manifest of the same image whose layers are compressed in another way."""
    return _json({**manifest, "layers": _layer_entries(layers)})


def stand_in(
    config: Mapping[str, Any], layers: Sequence[Layer], labels: Mapping[str, str], created: datetime
) -> ImageDocuments:
    """Return the documents of an image with the layers of another, whose configuration is given.

    It runs nothing. ``layers``: how they are compressed there.
    """
    own = {key: config[key] for key in ("architecture", "os", "rootfs")}
    return image_documents({**own, "config": {"Labels": labels}, "created": time_text(created)}, layers)


def _layer_entries(layers: Iterable[Layer]) -> list[dict[str, Any]]:
    return [{"digest": y.digest, "mediaType": y.media_type, "size": y.size} for y in layers]


def manifest_entry(digest: str, size: int, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return an image's entry in an index."""
    named = {"annotations": dict(annotations)} if annotations else {}
    return {**named, "digest": digest, "mediaType": MANIFEST_TYPE, "size": size}


def index_document(entries: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the index of an OCI layout with some images."""
    return _json({"manifests": entries, "mediaType": INDEX_TYPE, "schemaVersion": 2})


def parse_json(data: bytes) -> Any:
    """Parse untrusted JSON. ValueError if it is invalid, or ambiguous to a tool in Go."""
    found = load_json(data)
    try:
        _one_spelling(found)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def image_json(data: bytes, name: str) -> dict[str, Any]:
    """Return a document of an image in a registry. Raises `RegistryError`."""
    try:
        found = parse_json(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RegistryError(
            f"{name}: the registry's answer is not the JSON of an image", hint="is it a registry?"
        )
    return found


def is_list(document: bytes, name: str) -> bool:
    """Whether a document from a registry is a list of images. Raises `RegistryError` where it depends on the
    tool, or nothing known is named.

    What it is taken for hangs on the header of an answer, which nobody signs (CVE-2021-41190,
    https://github.com/opencontainers/distribution-spec/security/advisories/GHSA-mc8v-mgrf-8f4m). Go reads
    keys in any case.
    """
    found = image_json(document, name)
    keys = {key.casefold() for key in found}
    is_one = "manifests" in found
    other_type = found.get("mediaType") in (IMAGE_TYPES if is_one else LIST_TYPES)
    if other_type or ("manifests" in keys and (not is_one or keys & {"layers", "config"})):
        raise RegistryError(
            f"{name} can be read as an image and as a list of images",
            hint="somebody made it to deceive; do not use it",
        )
    try:
        check_type(found, *(LIST_TYPES if is_one else IMAGE_TYPES))
    except ValueError as error:
        raise RegistryError(
            f"{name}: its manifest is not one of an image: {error}",
            hint="tools differ in what they take it for; push it again with a tool that writes OCI's form",
        ) from None
    return is_one


def check_type(document: Mapping[str, Any], *known: str) -> None:
    """Raise ValueError for an untrusted document or descriptor of an unknown media type or schema.

    OCI leaves the media type of a document open; Go does not tell an empty one from a missing one.
    """
    if (kind := document.get("mediaType")) not in (None, "", *known):
        raise ValueError(f"the mediaType {shown(kind)} is unknown: expected {' or '.join(known)}")
    if (schema := document.get("schemaVersion", 2)) != 2:
        raise ValueError(f"the schemaVersion {shown(schema)} is unknown: expected 2")


def descriptors(index: bytes) -> list[Mapping[str, Any]]:
    """Return the entries of an untrusted image index. Raises ValueError if it is not one."""
    table = JsonTable(parse_json(index), "index")
    check_type(table.data, *LIST_TYPES)
    entries = table.tables("manifests")
    for entry in entries:
        entry.value("digest", str)
    return [entry.data for entry in entries]


_FREE = frozenset(("annotations", "exposedports", "labels", "volumes"))
"""Objects with free keys: Go reads them into maps, whose keys are case-sensitive."""


def _one_spelling(value: Any) -> None:
    """Raise ValueError for keys of an object that differ in case only, which are one to Go (encoding/json):
    of ``digest`` and ``Digest`` it takes the last.
    """
    if isinstance(value, list):
        for each in value:
            _one_spelling(each)
    elif isinstance(value, dict):
        first: dict[str, str] = {}
        for key, each in value.items():
            if (known := first.setdefault(key.casefold(), key)) != key:
                raise ValueError(f"the keys {known} and {key} are one to some tools")
            if key.casefold() not in _FREE:
                _one_spelling(each)


def time_text(moment: datetime) -> str:
    """Return a moment as RFC 3339 with seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def sha256(data: bytes) -> str:
    """Return ``sha256:…`` of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
