"""pyproject.toml → the dependencies of a project, its extras and its groups."""

from __future__ import annotations

import re

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import OF_TWO, TWO_GROUPS, Write, table

globals().update(fixtures_of("support.team_files"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "[tool.black]\n",
            "write what the project needs into project.dependencies, or into a requirements.txt",
        ),
        (TWO_GROUPS, "name a group with --group: dev, train"),
        (OF_TWO, "name a group with --group: test, train; or name an extra with --extra: all"),
    ],
)
def test_a_project_without_dependencies_says_where_there_are_some(write: Write, text: str, hint: str) -> None:
    file = write("pyproject.toml", text)
    with pytest.raises(RequestError, match="no dependencies") as caught:
        read_import(file)
    assert caught.value.hint.startswith(hint)
    write("requirements.txt", "a\n")
    with pytest.raises(RequestError) as caught:
        read_import(file)
    assert caught.value.hint.startswith(f"import a requirements file: --from {file.parent}/requirements.txt")


PROJECT = """\
[project]
name = "Our.Project"
version = "1"
requires-python = "==3.12.*"
dependencies = ["filelock==1.0"]
[project.optional-dependencies]
plot = ["numpy<2"]
[dependency-groups]
train = ["torch==2.4.1+cu121", {include-group = "base"}]
base = ["pip"]
"""


@pytest.mark.parametrize(
    ("times", "groups", "reason"),
    [(2, 40, "more than 100,000 lines"), (1, 200, "includes groups more than 50 deep")],
)
def test_groups_that_include_one_another_without_end(
    write: Write, times: int, groups: int, reason: str
) -> None:
    inner = '{include-group = "g%d"}, ' * times
    lines = [f"g{at} = [{inner % ((at + 1,) * times)} 'pip']" for at in range(groups)]
    text = '[project]\nname = "x"\n[dependency-groups]\n' + "\n".join(lines) + f"\ng{groups} = ['pip']\n"
    with pytest.raises(RequestError, match=f"dependency-groups: g0: {reason}"):
        read_import(write("pyproject.toml", text), extras=[], groups=["g0"])


def test_a_project_with_an_extra_and_a_group(write: Write) -> None:
    file = write("pyproject.toml", PROJECT)
    imported = read_import(file, extras=["plot"], groups=["train"])
    assert request_table(imported, {}) == {
        "name": "our-project", "python": "3.12", "cuda": "12.1", "torch": "2.4.1+cu121",
        "packages": ["filelock==1.0", "numpy<2", "pip"],
    }  # fmt: skip


@pytest.mark.parametrize("which", [{"extras": ["none"]}, {"groups": ["none"]}])
def test_an_unknown_extra_or_group(write: Write, which: dict[str, list[str]]) -> None:
    with pytest.raises(RequestError, match="none") as caught:
        read_import(
            write("pyproject.toml", PROJECT), extras=which.get("extras", ()), groups=which.get("groups", ())
        )
    assert "plot" in caught.value.hint or "train" in caught.value.hint


@pytest.mark.parametrize(
    ("requires", "python"),
    [
        (">=3.9", "3.11"),
        (">=3.12", "3.13"),
        (">=3.11.4", "3.13"),
        (">=3.12,<3.15", "3.13"),
        ("==3.11.4", "3.11"),
        ("~=3.10", "3.11"),
        (">=3.8,<3.11", "3.10"),
        ("==3.12.*", "3.12"),
        ("<3.9", "3.8"),
    ],
)
def test_the_python_that_a_project_allows(write: Write, requires: str, python: str) -> None:
    text = f"[project]\nname = 'a'\nrequires-python = '{requires}'\ndependencies = ['torch==2.4.1+cu121']\n"
    assert table(write("pyproject.toml", text))["python"] == python


@pytest.mark.parametrize(
    ("requires", "given", "message"),
    [
        (">=4", {}, "which none of 3.11.2, 3.13.5, 3.12, 3.10, 3.14, 3.9.2, 3.8 fits"),
        (">=3.11.4,<3.12", {}, "which none of 3.11.2, 3.13.5, 3.12, 3.10, 3.14, 3.9.2, 3.8 fits"),
        (">=3.12", {"python": "3.11"}, "requires-python is >=3.12, which Python 3.11.2 does not fit"),
    ],
)
def test_a_python_that_a_project_does_not_allow(
    write: Write, requires: str, given: dict[str, str], message: str
) -> None:
    text = f"[project]\nname = 'a'\nrequires-python = '{requires}'\ndependencies = ['torch==2.4.1+cu121']\n"
    with pytest.raises(RequestError, match=re.escape(message)) as caught:
        table(write("pyproject.toml", text), **given)
    hints = {
        ">=4": "correct the file",
        ">=3.11.4,<3.12": "Debian bookworm has Python 3.11.2: give --debian trixie, "
        "which gets the newest 3.11, or a --base-image that has one that fits",
        ">=3.12": "give --python 3.13, which fits",
    }
    assert caught.value.hint == hints[requires]


@pytest.mark.parametrize(
    "tool",
    [
        "[tool.setuptools.dynamic]\ndependencies = {file = ['needs.txt']}\n",
        "[tool.setuptools.dynamic]\ndependencies = {file = 'needs.txt'}\n",
        "[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ['needs.txt']\n",
    ],
)
def test_dependencies_that_a_project_reads_from_a_file(write: Write, tool: str) -> None:
    write("needs.txt", "torch==2.4.1+cu121\nnumpy<2\n")
    file = write("pyproject.toml", f"[project]\nname = 'a'\ndynamic = ['dependencies']\n{tool}")
    assert table(file)["packages"] == ["numpy<2"]


@pytest.mark.parametrize(
    "text",
    [
        "[tool.poetry]\nextras = []\nname = 'a'\n[tool.poetry.dependencies]\na = {extras = 3}\n",
        "[tool.poetry]\ngroup = {x = 3}\n[tool.poetry.dependencies]\n",
        "[project]\nname = 'a'\ndynamic = ['dependencies']\n[tool]\nsetuptools = 3\n",
        "[project]\nname = 'a'\ndynamic = ['dependencies']\n[tool.hatch]\nmetadata = []\n",
    ],
)
def test_tables_that_are_none(write: Write, text: str) -> None:
    with pytest.raises(RequestError):
        read_import(write("pyproject.toml", text), groups=["x"])


def test_extras_of_the_project_itself_are_for_their_markers_and_for_groups(write: Write) -> None:
    file = write(
        "pyproject.toml",
        "[project]\nname = 'ours'\ndependencies = ['a']\n"
        "[project.optional-dependencies]\nwin = ['b']\nlin = ['c']\n"
        "all = [\"ours[win] ; sys_platform == 'win32'\", \"ours[lin] ; sys_platform == 'linux'\"]\n"
        "[dependency-groups]\ntest = ['ours[lin]', 'd']\n",
    )
    found = request_table(read_import(file, extras=["all"]), {"cuda": "cpu"})
    assert found["packages"] == ["a", "c"]
    found = request_table(read_import(file, groups=["test"]), {"cuda": "cpu"})
    assert found["packages"] == ["a", "d", "c"]
