"""What the test modules of a session share, since it takes minutes to make: fixtures.

A module takes them with ``pytest_plugins = ["support.shared"]``.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import needs, spread  # noqa: F401 -- the benchmarks have no conftest.py
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.pipeline.workspace import read_lock
from support.artifacts import fetch_once
from support.bench import Bench
from support.built import build_once
from support.engines import Site, missing, needs_root, new_docker
from support.index import serve_index
from support.stack import Stack


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The lock of PyTorch for the CPU and a home that has its files, at first without an image."""
    for program in ("mmdebstrap", "crun"):
        needs(program)
    folder = tmp_path_factory.mktemp("cpu")
    with serve_index() as index:
        index.add("humanise", "1.0")
        bench = Bench(folder, index.url)
        bench.lock_torch()
        fetch_once(read_lock(folder / bench.lock), Store(Home(bench.home)), tmp_path_factory)
        try:
            yield bench
        finally:
            shutil.rmtree(folder)


@pytest.fixture(scope="session")
def digest(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of its image, built once. A test that takes the image away builds it again."""
    return build_once(bench, tmp_path_factory)


@pytest.fixture(scope="session")
def debian13(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root of Debian 13 with its Docker, for `new_docker`; made once a session."""
    needs_root()
    for program in ("mmdebstrap", "docker", "unshare"):
        needs(program)
    root = tmp_path_factory.mktemp("debian13") / "root"
    packages = "docker.io,docker-cli,docker-buildx,ca-certificates,iptables"
    made = subprocess.run(
        ["mmdebstrap", "--variant=minbase", f"--include={packages}", "trixie", str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        missing(f"no root of Debian 13 can be made: {made.stderr[-300:]}")
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def docker26(debian13: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Docker 26.1 with containerd's image store. What one module built there, the next finds in its cache."""
    with new_docker(tmp_path_factory.mktemp("engine") / "site", debian13) as site:
        yield site


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack of CUDA 12.1, and a store without an image."""
    for program in ("mmdebstrap", "crun"):
        needs(program)
    folder = tmp_path_factory.mktemp("stack")
    try:
        yield Stack(folder)
    finally:
        shutil.rmtree(folder)
