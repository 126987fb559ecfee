"""Source packages that are named by a repository or folder: fixtures.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.host.home import Home
from reprobuild.lock.packages import PythonPackage, SourceArchive
from reprobuild.sources import workshop
from support.building_resolve import Resolve
from support.git_server import GitServer, git_server
from support.index import Index
from support.python_root import python_root
from support.sdists import PYPROJECT, backend, serve_pip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("crun")
    return python_root(tmp_path_factory.mktemp("root"))


@pytest.fixture
def resolve(tmp_path: Path, root: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> Resolve:
    monkeypatch.setattr(workshop, "system_folders", lambda *_: [root])
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    (tmp_path / "project/envs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    serve_pip(index)
    return Resolve(Home(tmp_path / "home"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with git_server(tmp_path / "served") as served:
        yield served


def files(version: str = "1.0", requires: tuple[str, ...] = ()) -> dict[str, str]:
    return {"pyproject.toml": PYPROJECT, "backend.py": backend("tool", version, requires=requires)}


def source_of(resolve: Resolve) -> tuple[PythonPackage, SourceArchive]:
    (tool,) = (package for package in resolve.python if package.name == "tool")
    assert tool.source is not None
    return tool, tool.source
