"""Documents attached to an image in a registry: OCI referrers, by the API or by the tag in its place.

https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md, "Listing Referrers" and "Referrers
Tag Schema". What a registry lists is untrusted: each manifest and document is held against its digest.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import RegistryError
from ...request.table import DIGEST
from ..documents import (
    DOCUMENT_LIMIT,
    EMPTY,
    INDEX_TYPE,
    MANIFEST_TYPE,
    artifact_manifest,
    descriptor,
    descriptors,
    parse_json,
    sha256,
)
from .client import Registry

MOST = 1000
"""Documents of one image that are read: three for each night of a year."""
_MOST_BYTES = 64 * DOCUMENT_LIMIT
"""Of all of them."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A document to attach to an image."""

    media_type: str
    content: bytes
    annotations: Mapping[str, str] = field(default_factory=dict)


def attach(registry: Registry, manifest: bytes, attachments: Sequence[Attachment]) -> None:
    """Attach documents to the image of a manifest, which need not be there yet. Raises `RegistryError`."""
    if not attachments:
        return
    subject = descriptor(manifest, MANIFEST_TYPE)
    entries = []
    with tempfile.TemporaryDirectory(prefix="reprobuild.") as folder:
        for content in (EMPTY, *(each.content for each in attachments)):
            if not registry.has_blob(sha256(content)):
                blob = Path(folder) / "blob"
                blob.write_bytes(content)
                registry.send_blob(sha256(content), blob, lambda _: None)
    listed = True
    for each in attachments:
        notes, layer = {"annotations": dict(each.annotations)}, descriptor(each.content, each.media_type)
        document = _json(artifact_manifest(each.media_type, [layer], subject=subject, **notes))
        listed = registry.send_manifest(document, sha256(document)) == subject["digest"] and listed
        entries.append({**descriptor(document, MANIFEST_TYPE), "artifactType": each.media_type, **notes})
    if not listed:
        _list_by_tag(registry, str(subject["digest"]), entries)


def referrers(registry: Registry, digest: str, types: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the documents of some media types that are attached to an image, each with its manifest's digest.

    A document that is not what the registry lists is given as empty bytes. Raises `RegistryError`.
    """
    entries = registry.referrers(digest)
    if entries is None:
        found = registry.find_manifest(_tag(digest))
        entries = [] if found is None else _entries(found, digest)
    # A list need not tell the type of a document, and may have one twice.
    wanted = {
        str(entry["digest"]): entry.get("artifactType")
        for entry in entries
        if entry.get("artifactType") in (None, "", *types)
    }
    if len(wanted) > MOST:
        raise _too_many(f"{digest} has {len(wanted)} documents attached, and {MOST} are read at most")
    left = _MOST_BYTES
    for each, listed_as in wanted.items():
        document = _document(registry, each, digest, types)
        if (left := left - len(document)) < 0:
            raise _too_many(f"the documents attached to {digest} have more than {_MOST_BYTES:,} bytes")
        if document or listed_as:
            yield each, document


def _too_many(text: str) -> RegistryError:
    return RegistryError(text, hint="remove old ones in the registry; a push of another image starts anew")


def _document(registry: Registry, digest: str, subject: str, types: Sequence[str]) -> bytes:
    if not DIGEST.fullmatch(digest):
        return b""
    try:
        table = parse_json(registry.read_manifest(digest))
        (layer,) = table["layers"]
        content = str(layer["digest"])
        if table["subject"]["digest"] != subject or layer["mediaType"] not in types:
            return b""
        return registry.read_blob(content) if DIGEST.fullmatch(content) else b""
    except (ValueError, KeyError, TypeError):
        return b""


def _list_by_tag(registry: Registry, digest: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Add documents to the referrers tag of a registry without a referrers API."""
    found = registry.find_manifest(_tag(digest))
    before = [] if found is None else _entries(found, digest)
    new = {entry["digest"] for entry in entries}
    index = {
        "manifests": [*(entry for entry in before if entry["digest"] not in new), *entries],
        "mediaType": INDEX_TYPE,
        "schemaVersion": 2,
    }
    registry.send_manifest(_json(index), _tag(digest), INDEX_TYPE)


def _entries(index: bytes, digest: str) -> list[Mapping[str, Any]]:
    try:
        return descriptors(index)
    except ValueError as error:
        raise RegistryError(f"the list of what is attached to {digest} is not valid: {error}") from None


def _tag(digest: str) -> str:
    return digest.replace(":", "-")


def _json(value: Any) -> bytes:
    data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    if len(data) > DOCUMENT_LIMIT:
        raise RegistryError(f"a list of documents of {len(data):,} bytes is more than registries take")
    return data
