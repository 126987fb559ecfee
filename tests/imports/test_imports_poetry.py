"""The dependencies of a Poetry project: constraints, groups, extras."""

from __future__ import annotations

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.poetry import specifier
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import OF_TWO, PYTORCH, TWO_GROUPS, Read, Write, table

globals().update(fixtures_of("support.team_files"))


@pytest.mark.parametrize(
    ("text", "group", "found"),
    [
        (TWO_GROUPS, "train", "torch==2.4.1"),
        (TWO_GROUPS, "dev", "pytest<9,>=8"),
        (OF_TWO, "train", "torch<3,>=2.4"),
    ],
)
def test_poetry_s_groups(write: Write, text: str, group: str, found: str) -> None:
    imported = read_import(write("pyproject.toml", text), groups=[group])
    assert [str(each) for each in imported.requirements] == [found]


@pytest.mark.parametrize(
    ("poetry", "standard"),
    [
        ("^1.2.3", ">=1.2.3,<2"), ("^0.2.3", ">=0.2.3,<0.3"), ("^0.0.3", ">=0.0.3,<0.0.4"), ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"), ("~1", ">=1,<2"), ("~=1.2", "~=1.2"), ("1.2", "==1.2"), ("1.*", "==1.*"),
        ("*", ""), ("^2.4.0+cu124", ">=2.4.0,<3"), (">=1, <2", ">=1,<2"), (">=1 <2", ">=1,<2"),
        ("!=1.5", "!=1.5"),
    ],
)  # fmt: skip
def test_a_constraint_of_poetry_s(poetry: str, standard: str) -> None:
    assert specifier(poetry, "") == standard


REPO = "repo @ git+https://h.example/repo.git@v1"
POETRY = """
[tool.poetry]
name = "ours"
[tool.poetry.dependencies]
python = ">=3.12,<4"
torch = "2.4.1+cu121"
pandas = {version = "^2.1", extras = ["excel"], markers = "sys_platform == 'linux'"}
mac = {version = "*", markers = "sys_platform == 'darwin'"}
plots = {version = "~1.0", optional = true}
repo = {git = "https://h.example/repo.git", tag = "v1"}
two = [{version = "1.0", python = "<3.9"}, {version = "2.0", python = ">=3.9"}]
[tool.poetry.extras]
draw = ["plots"]
[tool.poetry.group.dev.dependencies]
pytest = "*"
"""


def test_a_project_of_poetry_s(write: Write) -> None:
    file = write("pyproject.toml", POETRY)
    found = table(file)
    assert (found["name"], found["python"], found["cuda"]) == ("ours", "3.13", "12.1")
    assert found["packages"] == ["pandas[excel]<3,>=2.1", REPO, "two==2.0"]
    more = request_table(read_import(file, extras=["draw"], groups=["dev"]), {})["packages"]
    assert more == ["pandas[excel]<3,>=2.1", "plots<1.1,>=1.0", REPO, "two==2.0", "pytest"]


@pytest.mark.parametrize(
    ("line", "says"),
    [("a = {git = 'https://me:x@h.example/a'}", "user name or password"), ("a = '^1 || ^2'", "alternatives"),
     ("a = '^x'", "is not a version")],
)  # fmt: skip
def test_what_poetry_has_and_cannot_be_locked(write: Write, line: str, says: str) -> None:
    file = write("pyproject.toml", f"[tool.poetry.dependencies]\n{line}\n")
    with pytest.raises(RequestError, match=rf"tool\.poetry\.dependencies\.a: .*{says}"):
        read_import(file)


SOURCES = "".join(
    f'[[tool.poetry.source]]\nname = "{name}"\nurl = "https://packages.{PYTORCH}/whl/{name}"\n'
    'priority = "explicit"\n'
    for name in ("cpu", "cu118")
)


EXCLUSIVE = (
    '[project]\nname = "ours"\nrequires-python = "==3.11.*"\ndependencies = ["six"]\n'
    '[project.optional-dependencies]\ncpu = ["torch"]\ncuda = ["torch"]\n\n'
    "[tool.poetry.dependencies]\ntorch = [\n"
    "  { markers = \"extra == 'cpu' and extra != 'cuda'\", source = \"cpu\" },\n"
    "  { markers = \"extra == 'cuda' and extra != 'cpu'\", source = \"cu118\" },\n]\n" + SOURCES
)


def test_exclusive_extras_of_poetry_choose_the_source(read: Read) -> None:
    found = {extra: read(EXCLUSIVE, *extra.split()) for extra in ("cpu", "cuda", "", "cpu cuda")}
    assert {extra: each.cuda for extra, each in found.items()} == {
        "cpu": "cpu", "cuda": "11.8", "": None, "cpu cuda": None,
    }  # fmt: skip
    assert found["cuda"].applied == (f"{found['cuda'].origin}: torch is from the source cu118",)


def test_a_group_of_poetrys_chooses_a_source_and_a_platform_is_a_marker(read: Read) -> None:
    text = (
        '[tool.poetry]\nname = "ours"\nfrobnicate = 1\n[tool.poetry.dependencies]\npython = "3.11.*"\n'
        'six = { version = "=1.16.0", platform = "linux" }\nmac = { version = "*", platform = "darwin" }\n'
        'idna = { version = "^3", allow-prereleases = true }\n'
        '[tool.poetry.group.gpu.dependencies]\ntorch = { version = "*", source = "cu118" }\n' + SOURCES
    )
    found = read(text, groups=("gpu",))
    assert found.cuda == "11.8"
    table = request_table(found, {})
    assert table["packages"] == ["six==1.16.0", "idna<4,>=3"]
    assert [line.partition(": ")[2].partition(" is ")[0] for line in found.ignored] == [
        *("tool.poetry.frobnicate", "tool.poetry: idna.allow-prereleases"),
    ]
    assert read(text).cuda is None


def test_poetrys_table_says_where_a_dependency_of_the_project_is_from(read: Read) -> None:
    found = read(
        '[project]\nname = "ours"\ndependencies = ["six>=1"]\n'
        '[tool.poetry.dependencies]\nsix = { git = "https://git.example/six.git", rev = "v1" }\n'
    )
    assert [str(each) for each in found.requirements] == ["six @ git+https://git.example/six.git@v1"]


@pytest.mark.parametrize("text", ["=3.7", "= 3.7", "==3.7", "3.7"])
def test_one_equals_sign_of_poetrys_is_a_pin(text: str) -> None:
    assert specifier(text, "here") == "==3.7"


def test_a_version_of_poetry_s_own_table_counts_beside_that_of_the_project(write: Write) -> None:
    file = write(
        "pyproject.toml",
        "[project]\nname = 'x'\nrequires-python = '==3.11.*'\ndependencies = ['a>=1', 'b', 'c==2']\n"
        "[tool.poetry.dependencies]\na = '^1.4'\nb = [{version = '1.0', python = '<3.11'}, "
        "{version = '2.0', python = '>=3.11'}]\nother = '1'\n",
    )
    found = read_import(file)
    assert [str(each) for each in found.requirements] == ["a<2,>=1,>=1.4", "b==2.0", "c==2"]
    assert found.applied == (
        f"{file}: tool.poetry: a: >=1.4,<2 counts, too",
        f"{file}: tool.poetry: b: ==2.0 counts, too",
    )
