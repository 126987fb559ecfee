"""An image → an OCI archive: one tar file, the same bytes for the same image, that skopeo and podman load."""

from __future__ import annotations

import hashlib
import json
import tarfile
from io import BytesIO
from pathlib import Path
from typing import IO

from ..home import storage_errors
from ..layers.image import MANIFEST_TYPE
from ..layers.tar import MTIME
from .layout import Image, ImageStore, damaged


def export(images: ImageStore, image: Image, name: str, file: Path) -> None:
    """Write an image as an OCI archive under ``name``; the file is there as a whole or not at all.

    Raises `ImageError` when a blob is missing or damaged, `StorageError`.
    """
    manifest = images.manifest(image.digest)
    size = images.blob(image.digest).stat().st_size
    entry = {
        "annotations": {"org.opencontainers.image.ref.name": name},
        "digest": image.digest,
        "mediaType": MANIFEST_TYPE,
        "size": size,
    }
    index = {"manifests": [entry], "mediaType": "application/vnd.oci.image.index.v1+json", "schemaVersion": 2}
    blobs = sorted({image.digest, manifest["config"]["digest"], *(y["digest"] for y in manifest["layers"])})
    partial = file.with_name(f".{file.name}.partial")
    with storage_errors(file.parent):
        try:
            with (
                partial.open("wb") as out,
                tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar,
            ):
                _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
                _add(tar, "index.json", json.dumps(index, separators=(",", ":")).encode())
                for digest in blobs:
                    _add_blob(tar, images.blob(digest), digest)
            partial.replace(file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


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
