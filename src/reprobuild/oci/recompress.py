"""An image of the store as it is handed on: its layers in zstd, as they are, or in gzip."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ..host.home import storage_errors
from ..host.workers import check_wanted, workers
from .blobs import damaged, open_blob, refuse_damaged
from .documents import repacked, sha256
from .file_tree import layer_of
from .store import Image, ImageStore
from .stream import CHUNK
from .tar_writer import Layer

GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
_GZIP_LEVEL = 1
"""Twice as fast as the default, for a tenth more bytes."""

Compression = Literal["zstd", "gzip"]
"""Of the layers: as they are in the store, or for readers that know nothing else."""


@dataclass(frozen=True, slots=True)
class Packed:
    """An image, and where its parts are."""

    digest: str
    """Of its manifest."""
    manifest: Path
    blobs: Mapping[str, Path]
    """The files of its configuration and its layers, by digest."""


@contextmanager
def packed(
    images: ImageStore,
    image: Image,
    compression: Compression,
    detail: Callable[[str], None] = lambda _: None,
) -> Iterator[Packed]:
    """Yield an image in a compression; what is made for that is gone after the block.

    ``detail`` is called with how far it has come.
    In gzip its digest is another one; the configuration, and so the image ID, and the files stay the same.
    Raises `ImageError` when a blob is missing or damaged, `StorageError`.
    """
    if compression == "zstd":
        yield Packed(image.digest, images.blob(image.digest), blobs_of(images, image))
        return
    with images.home.scratch("gzip") as scratch:
        with storage_errors(scratch):
            found = _in_gzip(images, image, scratch, detail)
        yield found


def blobs_of(images: ImageStore, image: Image) -> dict[str, Path]:
    """Return the configuration and the layers of an image, by digest."""
    manifest = images.manifest(image.digest)
    layers = {layer["digest"] for layer in manifest["layers"]}
    return {digest: images.blob(digest) for digest in (manifest["config"]["digest"], *layers)}


@contextmanager
def inflated(blob: Path) -> Iterator[IO[bytes]]:
    """Yield the tar of a layer of the store to read; a base image's may be compressed with gzip."""
    with open_blob(blob) as file:
        tar = layer_of(file)
        if tar is None:
            raise damaged(f"sha256:{blob.name}", "it is not a layer")
        yield tar


def inflated_size(blob: Path) -> int:
    """Return how many bytes `inflated` gives."""
    with inflated(blob) as tar:
        size = 0
        while data := tar.read(CHUNK):
            check_wanted()
            size += len(data)
        return size


def _in_gzip(images: ImageStore, image: Image, scratch: Path, detail: Callable[[str], None]) -> Packed:
    manifest = images.manifest(image.digest)
    layers = images.layers(image.digest)

    def one(number: int) -> tuple[Layer, Path]:
        described, (blob, diff_id) = manifest["layers"][number], layers[number]
        if described["mediaType"] == GZIP:  # of a base image
            return Layer(diff_id, described["digest"], described["size"], GZIP), blob
        return _layer_in_gzip(blob, diff_id, scratch / str(number))

    with workers(len(os.sched_getaffinity(0))) as pool:
        made = []
        for number, layer in enumerate(pool.map(one, range(len(layers))), 1):
            made.append(layer)
            detail(f"layer {number} of {len(layers)}")
    content = repacked(manifest, [layer for layer, _ in made])
    (scratch / "manifest").write_bytes(content)
    config = str(manifest["config"]["digest"])
    blobs = {config: images.blob(config), **{layer.digest: path for layer, path in made}}
    return Packed(sha256(content), scratch / "manifest", blobs)


def _layer_in_gzip(blob: Path, diff_id: str, target: Path) -> tuple[Layer, Path]:
    """Compress a layer of the store with gzip. Raises `ImageError` where it is not the one of its digest."""
    digest, size = hashlib.sha256(), 0
    # No name and no time are in its header, so the same layer gives the same bytes.
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=16 + zlib.MAX_WBITS)
    refuse_damaged(blob)
    with inflated(blob) as tar, target.open("wb") as out:
        while data := tar.read(CHUNK):
            check_wanted()
            piece = compressor.compress(data)
            digest.update(piece)
            size += out.write(piece)
        piece = compressor.flush()
        digest.update(piece)
        size += out.write(piece)
    return Layer(diff_id, f"sha256:{digest.hexdigest()}", size, GZIP), target
