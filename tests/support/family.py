"""Fixtures: an index on loopback, and one with a small PyTorch family.

A test module takes them with ``pytest_plugins = ["support.family"]``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.index import Index, serve_index
from support.resolving import LINUX


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An empty index that uv and reprobuild are set up with, as the only one."""
    with serve_index() as running:
        monkeypatch.setenv("UV_DEFAULT_INDEX", running.url)
        yield running


@pytest.fixture
def family(index: Index) -> Index:
    """torch for CUDA 11.7 to 13.0, with what it requires."""
    for version, cuda in {
        "2.0.1": "nvidia-cuda-runtime-cu11 (==11.7.99) ; platform_system == 'Linux'",
        "2.4.0": "nvidia-cuda-runtime-cu12==12.1.105; platform_system == 'Linux'",
        "2.4.1": "nvidia-cuda-runtime-cu12==12.1.105; platform_system == 'Linux'",
        "2.6.0": "nvidia-cuda-runtime-cu12==12.4.127; platform_system == 'Linux'",
        "2.9.0": "cuda-toolkit[cudart]==13.0.2; sys_platform == 'linux'",
    }.items():
        index.add("torch", version, tag=LINUX, requires=[cuda, "filelock"])
    index.add("nvidia-cuda-runtime-cu11", "11.7.99", tag="py3-none-manylinux1_x86_64")
    index.add("nvidia-cuda-runtime-cu12", "12.1.105", tag="py3-none-manylinux1_x86_64")
    index.add("nvidia-cuda-runtime-cu12", "12.4.127", tag="py3-none-manylinux2014_x86_64")
    index.add("nvidia-cuda-runtime", "13.0.96", tag="py3-none-manylinux2014_x86_64")
    toolkit = ["nvidia-cuda-runtime==13.0.96; extra == 'cudart'"]
    index.add("cuda-toolkit", "13.0.2", tag="py2.py3-none-any", requires=toolkit, extras=["cudart"])
    for version in ("1.0", "1.1"):
        index.add("filelock", version)
    index.add("numpy", "1.26.4", tag=LINUX)
    index.add("numpy", "2.1.0", tag=LINUX)
    index.add("packaging", "24.2")
    index.add("pip", "24.2")
    return index
