"""A store with images of no layers.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.image_documents import documents
from reprobuild.oci.store import ImageStore
from reprobuild.render.image_config import image_config
from support.locks import LOCK

CONSOLE = Console(quiet=True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> ImageStore:
    return ImageStore(Host(home, CONSOLE))


def add(store: ImageStore, epoch: int) -> str:
    """Add an image without layers that another epoch makes another one."""
    lock = replace(LOCK, epoch=epoch)
    return store.add(documents(lock, image_config(lock), []))
