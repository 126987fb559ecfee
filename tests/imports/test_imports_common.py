"""What all imports share: the Python that a project allows."""

from __future__ import annotations

import pytest

from reprobuild.imports.recognize import read_import
from support.fixtures import fixtures_of
from support.team_files import Write, table

globals().update(fixtures_of("support.team_files"))


@pytest.mark.parametrize(
    ("said", "python"),
    [("3.12.4\n", "3.12"), ("# ours\ncpython-3.10\n", "3.10"), ("3.9", "3.11"), ("pypy", "3.11")],
)
def test_a_python_version_beside_the_project_counts_where_it_fits(
    write: Write, said: str, python: str
) -> None:
    write(".python-version", said)
    text = "[project]\nname = 'a'\nrequires-python = '>=3.10'\ndependencies = ['torch==2.4.1+cu121']\n"
    assert table(write("pyproject.toml", text))["python"] == python


@pytest.mark.parametrize(
    ("file", "group", "key", "markers"),
    [
        ("poetry.lock", "main", "python-versions", "markers"),
        ("pdm.lock", "default", "requires_python", "marker"),
    ],
)
def test_the_markers_of_a_lock_are_for_the_python_version_beside_it(
    write: Write, file: str, group: str, key: str, markers: str
) -> None:
    """What it pins for that Python alone was left to the index."""
    write(".python-version", "3.10\n")
    write(
        "pyproject.toml", '[project]\nname = "x"\nrequires-python = ">=3.10"\ndependencies = ["old", "new"]\n'
    )
    packages = "".join(
        f'[[package]]\nname = "{name}"\nversion = "5"\ngroups = ["{group}"]\n'
        f"{markers} = \"python_version {which} '3.11'\"\n"
        for name, which in (("old", "<"), ("new", ">="))
    )
    lock = write(file, f'{packages}[metadata]\nlock-version = "2.1"\n{key} = ">=3.10"\n')
    found = read_import(lock)
    assert (found.python, [str(each) for each in found.requirements]) == ("3.10", ["old==5"])
    assert [str(each) for each in read_import(lock, python="3.12").requirements] == ["new==5"]
