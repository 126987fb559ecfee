"""What all imports share: the Python that a project allows."""

from __future__ import annotations

import pytest

from reprobuild.imports.common import hashes_for, places_for
from reprobuild.imports.recognize import read_import
from reprobuild.imports.target_system import ReadFor
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
    ("said", "python", "is_told"),
    [
        *(("3.11.9", None, True), ("cpython-3.12.4", None, True)),
        *(("3.11.2", None, False), ("3.11", None, False), ("3.11.9", "3.11", False)),
    ],
)
@pytest.mark.parametrize("file", ["pyproject.toml", "poetry.lock"])
def test_a_patch_version_beside_the_project_is_told_not_to_count(
    write: Write, file: str, said: str, python: str | None, is_told: bool
) -> None:
    """3.11.9 gave Debian's 3.11.2 without a word."""
    write(".python-version", f"{said}\n")
    project = write(
        "pyproject.toml", "[project]\nname = 'a'\nrequires-python = '>=3.10'\ndependencies = ['six']\n"
    )
    six = '[[package]]\nname = "six"\nversion = "1"\ngroups = ["main"]\n'
    write("poetry.lock", f'{six}[metadata]\nlock-version = "2.1"\npython-versions = ">=3.10"\n')
    lines = read_import(project.with_name(file), python=python).ignored
    minor, whole = said.removeprefix("cpython-")[:4], said.removeprefix("cpython-")
    line = f".python-version: {whole} chooses Python {minor} alone, not its patch version"
    assert [each.endswith(line) for each in lines if "3.1" in each] == [True] * is_told


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
    asked = """["old; python_version < '3.11'", "new; python_version >= '3.11'"]"""
    write("pyproject.toml", f'[project]\nname = "x"\nrequires-python = ">=3.10"\ndependencies = {asked}\n')
    packages = "".join(
        f'[[package]]\nname = "{name}"\nversion = "5"\ngroups = ["{group}"]\n'
        f"{markers} = \"python_version {which} '3.11'\"\n"
        for name, which in (("old", "<"), ("new", ">="))
    )
    lock = write(file, f'{packages}[metadata]\nlock-version = "2.1"\n{key} = ">=3.10"\n')
    found = read_import(lock)
    assert (found.python, [str(each) for each in found.requirements]) == ("3.10", ["old==5"])
    assert [str(each) for each in read_import(lock, python="3.12").requirements] == ["new==5"]


def test_the_hashes_for_one_of_the_platforms_count(write: Write) -> None:
    """As of CUDA's packages, which are pinned for x86_64 alone: whichever platform comes first."""
    lines = [
        *("a==1 --hash=sha256:" + "a" * 64, "b==1 ; platform_machine == 'x86_64' --hash=sha256:" + "b" * 64),
        "c==1 ; sys_platform == 'win32' --hash=sha256:" + "c" * 64,
    ]
    found = read_import(write("requirements.txt", "\n".join(lines)))
    arm, amd = ReadFor(architecture="arm64"), ReadFor(architecture="amd64")
    assert [[*hashes_for(found, "3.11", each)] for each in ([arm], [arm, amd], [amd])] == [
        ["a"],
        ["a", "b"],
        ["a", "b"],
    ]


def test_the_place_of_a_package_is_that_of_a_line_whose_marker_holds(write: Write) -> None:
    file = write(
        "requirements.txt",
        "torch==1.0 ; sys_platform == 'win32'\nsix==1.16.0 ; python_version < '3.9'\n"
        "six==1.17.0 ; python_version >= '3.9'\nidna\n",
    )
    found = read_import(file)
    assert places_for(found, "3.11") == {"six": f"{file}:3", "idna": f"{file}:4"}
    assert places_for(found, "3.8")["six"] == f"{file}:2"
    project = write(
        "pyproject.toml",
        '[project]\nname = "a"\ndependencies = ["six<1 ; python_version < \'3.9\'", "six", "idna"]\n',
    )
    places = places_for(read_import(project), "3.11")
    assert places == {
        "six": f"{project}: project.dependencies[1]",
        "idna": f"{project}: project.dependencies[2]",
    }
