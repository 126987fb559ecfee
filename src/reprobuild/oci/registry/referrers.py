"""Documents attached to an image in a registry: OCI referrers, by the API or by the tag in its place.

https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md, "Listing Referrers" and "Referrers
Tag Schema". What a registry lists is untrusted: each manifest and document is held against its digest, and
what one is, it says itself. Of a list only the digests are used.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import RegistryError
from ...request.table import DIGEST, JsonTable, shown
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
"""Of all of them, with their manifests."""
_MOST_FOREIGN_BYTES = 16 * DOCUMENT_LIMIT
"""Of those whose manifests say that they are something else, as scanners attach."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A document to attach to an image."""

    media_type: str
    content: bytes
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unread:
    """What is attached to an image and could not be read as a document about it, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Referrer:
    """What is attached to an image."""

    digest: str
    """Of its manifest, as the registry lists it."""
    document: bytes | Unread
    foreign: str = ""
    """The type that its manifest gives it, where that is none of those asked for."""


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


def referrers(registry: Registry, digest: str, types: Sequence[str]) -> Iterator[Referrer]:
    """Yield everything that is attached to an image; documents of ``types`` are what is looked for.

    A document that a manifest gives another type is yielded too: what it is, its own bytes say. Raises
    `RegistryError`, also for more than can be read.
    """
    entries = registry.referrers(digest)
    if entries is None:
        found = registry.find_manifest(_tag(digest))
        entries = [] if found is None else _entries(found, digest)
    listed = list(dict.fromkeys(str(entry["digest"]) for entry in entries))  # one may be there twice
    if len(listed) > MOST:
        raise _too_many(f"{digest} has {len(listed)} documents attached, and {MOST} are read at most")
    left, left_foreign = _MOST_BYTES, _MOST_FOREIGN_BYTES
    for each in listed:
        try:
            if not DIGEST.fullmatch(each):
                raise _NotOneError("its digest cannot be verified")  # noqa: TRY301 -- as what is not read below
            manifest = registry.read_manifest(each)
            content, size, foreign = _content(manifest, digest, types)
            if size > (limit := min(left_foreign, DOCUMENT_LIMIT) if foreign else DOCUMENT_LIMIT):
                raise _NotOneError(f"it has {size:,} bytes, and at most {limit:,} are read", foreign)  # noqa: TRY301
            document = registry.read_blob(content)
        except _NotOneError as error:
            reason, foreign = error.args
            yield Referrer(each, Unread(f"{_NOT_ONE}: {reason}"), foreign)
            continue
        left -= len(manifest) + len(document)
        left_foreign -= len(document) if foreign else 0
        if left < 0:
            raise _too_many(f"the documents attached to {digest} have more than {_MOST_BYTES:,} bytes")
        yield Referrer(each, document, foreign)


def _too_many(text: str) -> RegistryError:
    return RegistryError(text, hint="remove old ones in the registry; a push of another image starts anew")


_NOT_ONE = "the registry lists it, and it is not one document about this image"


class _NotOneError(Exception):
    """What is attached is not one document about the image: the reason, and its type if that is foreign."""

    def __init__(self, reason: str, foreign: str = "") -> None:
        super().__init__(reason, foreign)


def _content(data: bytes, subject: str, types: Sequence[str]) -> tuple[str, int, str]:
    """Return digest and size of the document in an untrusted manifest, and its type if it is foreign."""
    try:
        table = JsonTable(parse_json(data), "its manifest")
        of = table.table("subject").digest("digest")
        layers = table.tables("layers")
        config = table.table("config") if table.has("config") else JsonTable({})
        given = [table.data.get("artifactType"), *(each.data.get("mediaType") for each in (config, *layers))]
        foreign = "" if any(each in types for each in given) else shown(next(filter(None, given), "no type"))
        if of != subject:
            raise _NotOneError(f"it is about another image, {of}", foreign)
        if len(layers) != 1:
            raise _NotOneError(f"its manifest has {len(layers)} layers", foreign)
        (layer,) = layers
        return layer.digest("digest"), layer.size() if layer.has("size") else 0, foreign
    except ValueError as error:
        raise _NotOneError(str(error)) from None


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
