"""What tests of imports share: the files of a team, and what is read from them on a machine of amd64.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprobuild.imports import target_system
from reprobuild.imports.recognize import Imported, read_import
from reprobuild.imports.request_keys import request_table

Write = Callable[[str, str], Path]
Read = Callable[..., Imported]

PYTORCH = "pytorch.org"
WINDOWS = """
lock-version = "1.0"
created-by = "uv"
[[packages]]
name = "pywin32"
version = "306"
marker = "sys_platform == 'win32'"
sdist = {name = "pywin32-306.tar.gz", url = "https://index.example/pywin32-306.tar.gz"}
[[packages]]
name = "ours"
marker = "sys_platform == 'win32'"
directory = {path = "."}
[[packages]]
name = "a"
version = "1.0"
wheels = [{name = "a-1.0-py3-none-any.whl", url = "https://index.example/a-1.0-py3-none-any.whl"}]
"""
TWO_GROUPS = """
[tool.poetry]
name = "x"
[tool.poetry.dependencies]
python = "^3.10"
[tool.poetry.dev-dependencies]
pytest = "^8"
[tool.poetry.group.train.dependencies]
torch = "2.4.1"
"""


OF_TWO = (
    "[project]\nname = 'x'\n[project.optional-dependencies]\nall = ['a']\n[dependency-groups]\ntest = ['b']\n"
    "[tool.poetry.group.train.dependencies]\ntorch = '^2.4'\n"
)


@pytest.fixture(autouse=True)
def _amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_system, "architecture", lambda: "amd64")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def writer(name: str, text: str) -> Path:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return writer


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Import a pyproject.toml of some text."""

    def reader(text: str, *extras: str, groups: tuple[str, ...] = ()) -> Imported:
        (tmp_path / "pyproject.toml").write_text(text)
        return read_import(tmp_path / "pyproject.toml", extras=extras, groups=groups)

    return reader


def table(file: Path, **given: Any) -> dict[str, Any]:
    """The keys of the request that a file makes."""
    return request_table(read_import(file), given)


def packages(file: Path, **given: Any) -> list[str]:
    """The packages that a file asks for."""
    found: list[str] = request_table(read_import(file, **given), {"cuda": "cpu"})["packages"]
    return found
