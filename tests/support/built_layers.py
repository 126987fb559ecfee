"""Layers of toy wheels on a stand-in for Debian.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import zstandard

from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.builder import BuiltLayer, build_layers
from reprobuild.layers.cache import LayerCache
from reprobuild.lock.model import Lock
from support.building import PYTHON, without_debian

TAG = f"cpython-{PYTHON.replace('.', '')}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return without_debian(monkeypatch)


def build_all(lock: Lock, home: Home) -> tuple[BuiltLayer, ...]:
    return build_layers(lock, Store(home), Host(home, Console(quiet=True)))


def unpack(home: Home, layers: Sequence[BuiltLayer], root: Path) -> Path:
    root.mkdir()
    for layer in layers:
        blob = LayerCache(home).blob(layer.cached.layer.digest).read_bytes()
        tar = zstandard.ZstdDecompressor().decompressobj().decompress(blob)
        subprocess.run(["tar", "-xp", "-C", str(root)], input=tar, check=True)
    return root


def left_over(home: Home) -> list[str]:
    return [path.name for path in home.folder("tmp").iterdir()]
