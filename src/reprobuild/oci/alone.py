"""One image of the store as a folder, which tools read as an archive, without a copy of its layers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..host.home import storage_errors
from .documents import LAYOUT, index_document, manifest_entry
from .packed import blobs_of
from .store import Image, ImageStore, damaged


@contextmanager
def alone(images: ImageStore, image: Image) -> Iterator[Path]:
    """Give an OCI layout that has one image, without a name; its blobs are those of the store.

    Raises `ImageError` for an image that is damaged, `StorageError`.
    """
    entry = manifest_entry(image.digest, images.blob(image.digest).stat().st_size)
    with images.home.scratch("layout") as folder:
        with storage_errors(folder):
            (folder / "blobs").symlink_to(images.folder / "blobs")
            (folder / "oci-layout").write_bytes(LAYOUT)
            (folder / "index.json").write_bytes(index_document([entry]))
        yield folder


def refuse_damaged(images: ImageStore, image: Image) -> None:
    """Raise `ImageError` for a blob of an image that is missing or is not what its name says."""
    for digest, blob in blobs_of(images, image).items():
        try:
            with blob.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise damaged(digest, "it is missing") from None
        if found != digest[7:]:
            raise damaged(digest, "its bytes do not fit its name")
