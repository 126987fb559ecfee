"""A store with an image, for tests of archives.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.archive import export
from reprobuild.oci.recompress import Compression
from reprobuild.oci.store import ImageStore
from support.small_root import small_image

CONSOLE = Console(quiet=True)


NAME = "team/small:1"


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(Host(Home(tmp_path / "home"), CONSOLE))


@pytest.fixture
def digest(tmp_path: Path) -> str:
    return small_image(Home(tmp_path / "home"))


def write(
    store: ImageStore, digest: str, file: Path, name: str = NAME, compression: Compression = "zstd"
) -> Path:
    home = Home(store.folder.parent)
    found = export(store, store.find(digest), name, file, compression=compression)
    assert (found == digest) == (compression == "zstd")
    assert [*home.folder("tmp").iterdir()] == []
    return file
