"""An index with source archives, for tests of builds.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import needs
from reprobuild.host.home import Home
from reprobuild.sources import workshop
from support.building_resolve import Resolve
from support.index import Index
from support.python_root import python_root
from support.sdists import serve_pip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("crun")
    return python_root(tmp_path_factory.mktemp("root"))


@pytest.fixture
def resolve(tmp_path: Path, root: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> Resolve:
    monkeypatch.setattr(workshop, "system_folders", lambda *_: [root])
    serve_pip(index)
    return Resolve(Home(tmp_path / "home"))
