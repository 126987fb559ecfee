"""Push an image of the embedded store to a registry, blob by blob, the tag last."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import RegistryError
from ...host.console import Console
from ...host.workers import while_wanted, workers
from ...request.table import JsonTable
from ..documents import parse_json
from ..recompress import GZIP, Compression, Packed, packed
from ..store import Image, ImageStore, refuse_candidate
from .client import Registry, Target
from .referrers import Attachment, attach

_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did."""

    digest: str
    sent: int
    """Bytes of the blobs that the registry did not have."""
    there: int
    """Bytes of the blobs that it had."""


def push(
    images: ImageStore,
    image: Image,
    target: Target,
    console: Console,
    *,
    force: bool,
    compression: Compression = "zstd",
    attachments: Callable[[str], Sequence[Attachment]] = lambda _: (),
) -> Pushed:
    """Push an image, and documents attached to it; blobs that the registry has are not sent again.

    ``attachments`` returns the documents for the digest that the image has there.

    The tag is given by the very last request, so a push that fails leaves none. Raises `ImageError` for a
    candidate, `RegistryError`, also when the tag is another image's and not ``force``, and as `packed`.
    """
    refuse_candidate(image)
    registry = Registry(target)
    there = registry.manifest_digest()
    if compression != "zstd":
        if there is not None and not force and _differs(registry.read_manifest(there), images, image):
            raise _taken(target, there)
        console.step(f"compressing the layers with {compression}")
    with packed(images, image, compression, console.detail) as found:
        return _send(registry, found, target, console, there=there, force=force, attachments=attachments)


def _taken(target: Target, there: str) -> RegistryError:
    return RegistryError(
        f"{target} is another image already ({there})",
        hint="--force moves the tag; or push to another one",
    )


def _differs(there: bytes, images: ImageStore, image: Image) -> bool:
    """Return whether a manifest is certainly not that of this image with its layers in gzip.

    Compressing takes minutes for a large image, so this is asked first.
    """
    try:
        found, own = JsonTable(parse_json(there), "manifest"), images.manifest(image.digest)
        types = [layer.value("mediaType", str) for layer in found.tables("layers")]
    except ValueError:
        return True
    rest = [{key: value for key, value in each.items() if key != "layers"} for each in (found.data, own)]
    return rest[0] != rest[1] or types != [GZIP] * len(own["layers"])


def _send(
    registry: Registry,
    image: Packed,
    target: Target,
    console: Console,
    *,
    there: str | None,
    force: bool,
    attachments: Callable[[str], Sequence[Attachment]],
) -> Pushed:
    if there is not None and there != image.digest and not force:
        raise _taken(target, there)
    documents = attachments(image.digest)  # before anything is sent, since they may be refused
    manifest = json.loads(image.manifest.read_bytes())
    blobs = sorted({b["digest"]: b["size"] for b in (manifest["config"], *manifest["layers"])}.items())
    with workers(_AT_ONCE) as pool:
        known = list(pool.map(lambda blob: registry.has_blob(blob[0]), blobs))
        missing = [blob for blob, has in zip(blobs, known, strict=True) if not has]
        sent = sum(size for _, size in missing)
        with console.progress("push", sent) as advance:
            # The largest first, so that no thread is left with it at the end.
            order = sorted(missing, key=lambda blob: -blob[1])

            def send(blob: tuple[str, int]) -> None:
                registry.send_blob(blob[0], image.blobs[blob[0]], while_wanted(advance))

            list(pool.map(send, order))
    attach(registry, image.manifest.read_bytes(), documents)  # before the tag: there is none without them
    if there != image.digest:
        registry.send_manifest(image.manifest.read_bytes())
    if registry.manifest_digest() != image.digest:
        raise RegistryError(f"{target} does not have the digest that was sent", hint="push again")
    return Pushed(image.digest, sent, sum(size for _, size in blobs) - sent)
