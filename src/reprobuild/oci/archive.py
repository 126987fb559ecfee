"""Export an image as an archive for other tools, reproducibly."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO

from ..host.outputs import one_writer
from ..host.workers import workers
from .archive_manifest import NAME
from .blobs import damaged, open_blob, refuse_damaged
from .documents import LAYOUT, index_document, manifest_entry
from .recompress import Compression, blobs_of, inflated, inflated_size, packed
from .store import Image, ImageStore
from .stream import CHUNK, Hashed
from .tar_writer import MTIME


def export(
    images: ImageStore, image: Image, name: str, file: Path, *, compression: Compression = "zstd"
) -> str:
    """Write an image as an OCI archive under ``name``; return the digest that it has there.

    With gzip that is another one; the configuration, and so the image ID, and the files stay the same. The
    file is there as a whole or not at all. Raises `ImageError` when a blob is missing or damaged,
    `StorageError`.
    """
    with (
        one_writer(file, images.console) as partial,
        packed(images, image, compression, images.console.detail) as found,
        partial.open("wb") as out,
    ):
        _write_layout(out, name, found.digest, {found.digest: found.manifest, **found.blobs})
    return found.digest


def write_oci(
    images: ImageStore, image: Image, name: str | None, out: IO[bytes], *, without: Collection[str] = ()
) -> None:
    """Write an image as an OCI archive; its digest stays what it is.

    ``without``: digests of layers that are left out, since whoever reads it has them.
    """
    blobs = {digest: blob for digest, blob in blobs_of(images, image).items() if digest not in without}
    _write_layout(out, name, image.digest, {image.digest: images.blob(image.digest), **blobs})


def _write_layout(out: IO[bytes], name: str | None, digest: str, blobs: Mapping[str, Path]) -> None:
    entry = manifest_entry(digest, blobs[digest].stat().st_size, None if name is None else {NAME: name})
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=CHUNK) as tar:
        _add(tar, "oci-layout", LAYOUT)
        _add(tar, "index.json", index_document([entry]))
        # Some readers, such as syft, make no folder that the archive does not name.
        for folder in ("blobs", "blobs/sha256"):
            tar.addfile(_info(folder, 0, kind=tarfile.DIRTYPE, mode=0o755))
        for blob in sorted(blobs):
            _add_blob(tar, blobs[blob], blob)


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
        with _opened(images.blob(config)) as file:
            _add(tar, f"{config}.json", file.read())
        sent = list(zip(layers, names, strict=True))[without:]
        # A tar says how long a file is before it comes, which takes reading the layer twice: while one is
        # being sent, that of the next.
        with workers(1) as ahead:
            sizes = ahead.map(inflated_size, [blob for (blob, _), _ in sent])
            for ((blob, _), name), size in zip(sent, sizes, strict=True):
                with inflated(blob) as layer:
                    tar.addfile(_info(name, size), layer)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_info(name, len(content)), BytesIO(content))


def _add_blob(tar: tarfile.TarFile, path: Path, digest: str) -> None:
    """Add a blob, verified as it is written, so that no damaged archive is handed on."""
    with _opened(path) as blob:
        hashing = Hashed(blob)
        tar.addfile(_info(f"blobs/sha256/{digest[7:]}", path.stat().st_size), hashing)
    if hashing.digest != digest:
        refuse_damaged(path)
        raise damaged(digest, "its bytes changed while they were read")


def _opened(blob: Path) -> IO[bytes]:
    try:
        return open_blob(blob)
    except FileNotFoundError:
        raise damaged(f"sha256:{blob.name}", "it is missing") from None


def _info(name: str, size: int, *, kind: bytes = tarfile.REGTYPE, mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode, info.type = size, MTIME, mode, kind
    return info
