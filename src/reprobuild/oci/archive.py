"""An image of the store → an archive that other tools take; the same image gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import zlib
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Literal

import zstandard

from ..host.home import Home, storage_errors
from .described import NAME
from .documents import MANIFEST_TYPE, repacked, sha256
from .file_tree import layer_of
from .store import Image, ImageStore, damaged
from .stream import CHUNK
from .tar_writer import MTIME, Layer

GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
_GZIP_LEVEL = 1
"""Twice as fast as the default, for a tenth more bytes."""


Compression = Literal["zstd", "gzip"]
"""Of the layers: as they are in the store, or for readers that know nothing else."""


def export(
    images: ImageStore, image: Image, name: str, file: Path, *, home: Home, compression: Compression = "zstd"
) -> str:
    """Write an image as an OCI archive under ``name``; return the digest that it has there.

    With gzip that is another one; the configuration, and so the image ID, and the files stay the same. The
    file is there as a whole or not at all. Raises `ImageError` when a blob is missing or damaged,
    `StorageError`.
    """
    partial = file.with_name(f".{file.name}.partial")
    with storage_errors(file.parent), home.scratch("export") as scratch:
        try:
            with partial.open("wb") as out:
                if compression == "gzip":
                    digest = _write_gzip(images, image, name, out, scratch)
                else:
                    write_oci(images, image, name, out)
                    digest = image.digest
            partial.replace(file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    return digest


def write_oci(
    images: ImageStore, image: Image, name: str | None, out: IO[bytes], *, without: Collection[str] = ()
) -> None:
    """Write an image as an OCI archive; its digest stays what it is.

    ``without``: digests of layers that are left out, since whoever reads it has them.
    """
    blobs = {image.digest: images.blob(image.digest), **_blobs(images, image, without)}
    _write_layout(out, name, image.digest, blobs)


def _blobs(images: ImageStore, image: Image, without: Collection[str] = ()) -> dict[str, Path]:
    """Return the configuration and the layers of an image."""
    manifest = images.manifest(image.digest)
    layers = {layer["digest"] for layer in manifest["layers"]} - {*without}
    return {digest: images.blob(digest) for digest in (manifest["config"]["digest"], *layers)}


def _write_layout(out: IO[bytes], name: str | None, digest: str, blobs: Mapping[str, Path]) -> None:
    entry = {
        **({"annotations": {NAME: name}} if name is not None else {}),
        "digest": digest,
        "mediaType": MANIFEST_TYPE,
        "size": blobs[digest].stat().st_size,
    }
    index = {"manifests": [entry], "mediaType": "application/vnd.oci.image.index.v1+json", "schemaVersion": 2}
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=CHUNK) as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(tar, "index.json", json.dumps(index, separators=(",", ":")).encode())
        for blob in sorted(blobs):
            _add_blob(tar, blobs[blob], blob)


def _write_gzip(images: ImageStore, image: Image, name: str, out: IO[bytes], scratch: Path) -> str:
    """Write the archive with all layers in gzip; return the digest of its manifest."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 -- who only lists images need not wait

    manifest = images.manifest(image.digest)
    layers = images.layers(image.digest)

    def one(number: int) -> tuple[Layer, Path]:
        described, (blob, diff_id) = manifest["layers"][number], layers[number]
        if described["mediaType"] == GZIP:  # of a base image
            return Layer(diff_id, described["digest"], described["size"], GZIP), blob
        return _in_gzip(blob, diff_id, scratch / str(number))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        packed = list(pool.map(one, range(len(layers))))
    content = repacked(manifest, [layer for layer, _ in packed])
    (scratch / "manifest").write_bytes(content)
    config = str(manifest["config"]["digest"])
    blobs = {sha256(content): scratch / "manifest", config: images.blob(config)}
    _write_layout(out, name, sha256(content), blobs | {layer.digest: path for layer, path in packed})
    return sha256(content)


def _in_gzip(blob: Path, diff_id: str, target: Path) -> tuple[Layer, Path]:
    """Compress a layer of the store with gzip. Raises `ImageError` where it is not the one of its digest."""
    digest, size = hashlib.sha256(), 0
    # No name and no time are in its header, so the same layer gives the same bytes.
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=16 + zlib.MAX_WBITS)
    try:
        with blob.open("rb") as file, target.open("wb") as out:
            if hashlib.file_digest(file, "sha256").hexdigest() != blob.name:
                raise damaged(f"sha256:{blob.name}", "its bytes do not fit its name")
            file.seek(0)
            stream = layer_of(file)
            while stream is not None and (data := stream.read(CHUNK)):
                piece = compressor.compress(data)
                digest.update(piece)
                size += out.write(piece)
            piece = compressor.flush()
            digest.update(piece)
            size += out.write(piece)
    except FileNotFoundError:
        raise damaged(f"sha256:{blob.name}", "it is missing") from None
    return Layer(diff_id, f"sha256:{digest.hexdigest()}", size, GZIP), target


def write_docker(images: ImageStore, image: Image, out: IO[bytes], *, without: int = 0) -> None:
    """Write an image as ``docker save`` did before version 25, with layers inflated, and without a name.

    Any Docker takes it, and knows the image by the digest of its configuration. ``without``: how many of the
    lowest layers are left out, since it has them; it does not look for their files then.
    """
    config = str(images.manifest(image.digest)["config"]["digest"])[7:]
    layers = images.layers(image.digest)
    names = [f"{diff_id[7:]}.tar" for _, diff_id in layers]
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=CHUNK) as tar:
        manifest = [{"Config": f"{config}.json", "Layers": names, "RepoTags": None}]
        _add(tar, "manifest.json", json.dumps(manifest).encode())
        _add(tar, f"{config}.json", images.blob(config).read_bytes())
        for (blob, _), name in list(zip(layers, names, strict=True))[without:]:
            # A tar says how long a file is before it comes, which takes reading the layer twice.
            with blob.open("rb") as file:
                size = sum(map(len, zstandard.ZstdDecompressor().read_to_iter(file, read_size=CHUNK)))
            with blob.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
                tar.addfile(_info(name, size), stream)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_info(name, len(content)), BytesIO(content))


def _add_blob(tar: tarfile.TarFile, path: Path, digest: str) -> None:
    """Add a blob and verify it on the way: who gets the archive must not be the first to see damage."""
    try:
        blob = path.open("rb")
    except FileNotFoundError:
        raise damaged(digest, "it is missing") from None
    with blob:
        hashing = _Hashing(blob)
        tar.addfile(_info(f"blobs/sha256/{digest[7:]}", path.stat().st_size), hashing)
    if hashing.digest() != digest:
        raise damaged(digest, "its bytes do not fit its name")


class _Hashing:
    """A file to read from, whose bytes are hashed on the way."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def digest(self) -> str:
        return "sha256:" + self._hash.hexdigest()


def _info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, MTIME, 0o644
    return info
