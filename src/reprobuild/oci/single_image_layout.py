"""One image of the store as a folder, which tools read as an archive, without a copy of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..host.home import storage_errors
from .documents import LAYOUT, index_document, manifest_entry
from .store import Image, ImageStore


@contextmanager
def alone(images: ImageStore, image: Image) -> Iterator[Path]:
    """Yield an OCI layout that has one image, without a name; its blobs are those of the store.

    Raises `ImageError` for an image that is damaged, `StorageError`.
    """
    entry = manifest_entry(image.digest, images.blob(image.digest).stat().st_size)
    with images.home.scratch("layout") as folder:
        with storage_errors(folder):
            (folder / "blobs").symlink_to(images.folder / "blobs")
            (folder / "oci-layout").write_bytes(LAYOUT)
            (folder / "index.json").write_bytes(index_document([entry]))
        yield folder
