"""A Docker and images for tests of the registry on loopback.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.store import Image, ImageStore
from support.locks import LOCK
from support.small_root import small_image


@pytest.fixture
def images(tmp_path: Path) -> ImageStore:
    return ImageStore(Host(Home(tmp_path / "home"), Console(quiet=True)))


def image_with(images: ImageStore, text: str) -> Image:
    """An image whose uppermost layer alone depends on the text."""
    return images.find(small_image(images.home, LOCK, **{"etc/which": text.encode()}))


def damage(images: ImageStore, image: Image) -> None:
    """Change a byte in the middle of the uppermost layer."""
    blob, _ = images.layers(image.digest)[-1]
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.unlink()
    blob.write_bytes(data)
