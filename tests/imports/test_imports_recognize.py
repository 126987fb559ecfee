"""A team's files → a request."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports import project_files
from reprobuild.imports.recognize import read_import
from reprobuild.lock import conda_lock
from support.fixtures import fixtures_of
from support.team_files import Write

globals().update(fixtures_of("support.team_files"))


# --- requirements.txt ---


# --- Which CUDA, which torch ---


# --- pylock.toml ---


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pylock.toml", "a = [", "not valid TOML"),
        ("pylock.toml", 'lock-version = "1.0"', "not a PEP 751 lock"),
        ("pyproject.toml", "project = 1", "expected a table"),
        ("environment.lock", "", "not a file that can be imported"),
        ("pyproject.toml", '[project]\nname = "a"\ndynamic = ["dependencies"]', "not in the file"),
        ("pyproject.toml", '[project]\nname = "a"', "no dependencies"),
        ("pyproject.toml", '[project]\nname = "a"\ndependencies = [1]', "a list of requirements"),
        ("uv.lock", "version = 1", "is not in the same folder"),
        ("pyproject.toml", '[project]\nname = "a"\ndynamic = 3', "project.dynamic: expected a list"),
        ("pyproject.toml", "[tool.poetry.dependencies]\npython = 'x'\na = '1'", "is not a range of versions"),
    ],
)
def test_bad_files(write: Write, name: str, text: str, says: str) -> None:
    with pytest.raises(RequestError, match=re.escape(says)) as caught:
        read_import(write(name, text))
    assert name in caught.value.message


def test_a_requirements_file_by_the_name_of_a_lock(write: Write) -> None:
    with pytest.raises(RequestError, match="not valid TOML") as caught:
        read_import(write("pylock.toml", "# of uv export\n-e .\nanyio==4.9.0 \\\n    --hash=sha256:67\n"))
    assert caught.value.hint == "it has the lines of a requirements file: rename it to requirements.txt"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no such file"):
        read_import(tmp_path / "requirements.txt")


def test_a_marker_on_the_kernel_is_named_and_this_machine_s_does_not_count(write: Write) -> None:
    text = "torch\nidna==3.4 ; platform_release >= '5'\n"
    (line,) = read_import(write("requirements.txt", text)).ignored
    assert """the marker 'platform_release >= "5"' asks for the kernel""" in line
    text = "[project]\nname = 'a'\nversion = '1'\ndependencies = ['torch', \"six ; platform_version != ''\"]"
    found = read_import(write("pyproject.toml", text))
    assert any("platform_version" in line for line in found.ignored)


# --- pyproject.toml and uv.lock ---


def test_extras_of_a_file_that_has_none(write: Write) -> None:
    with pytest.raises(RequestError, match="has no extras"):
        read_import(write("requirements.txt", "a"), extras=["x"])


# --- Indexes in a file, and options of builds ---


# --- requires-python ---


# --- Poetry, and dependencies in other files ---


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "numpy\n" * 40),
        (
            "pyproject.toml",
            '[project]\nname = "a"\nversion = "1"\ndependencies = [' + "'numpy', " * 40 + "]\n",
        ),
        (
            "setup.py",
            "from setuptools import setup\nsetup(name='a', install_requires=[" + "'numpy', " * 40 + "])\n",
        ),
    ],
)
def test_an_import_parses_so_many_requirements_and_no_more(
    write: Write, name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(name, text)
    read_import(file)
    read_import(file)  # each import counts from the start
    monkeypatch.setattr(project_files, "MOST_REQUIREMENTS", 30)
    with pytest.raises(RequestError, match=r"more than 30 requirements"):
        read_import(file)


def test_a_long_environment_is_refused_before_it_is_parsed(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "name: x\nchannels: [conda-forge]\ndependencies:\n" + "  - numpy\n" * 27_000
    monkeypatch.setattr(conda_lock, "load_yaml", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(RequestError, match=r"environment\.yml: has more than 262,144 characters"):
        read_import(write("environment.yml", text))
