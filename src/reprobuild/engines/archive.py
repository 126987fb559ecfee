"""An image → an OCI archive: one tar file, the same bytes for the same image, that skopeo and podman load."""

from __future__ import annotations

import json
import tarfile
from io import BytesIO
from pathlib import Path

from ..home import storage_errors
from ..layers.image import MANIFEST_TYPE
from ..layers.tar import MTIME
from .layout import Image, ImageStore


def export(images: ImageStore, image: Image, name: str, file: Path) -> None:
    """Write an image as an OCI archive under ``name``; the file is there as a whole or not at all."""
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
                    with images.blob(digest).open("rb") as blob:
                        info = _info(f"blobs/sha256/{digest[7:]}", images.blob(digest).stat().st_size)
                        tar.addfile(info, blob)
            partial.replace(file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_info(name, len(content)), BytesIO(content))


def _info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, MTIME, 0o644
    return info
