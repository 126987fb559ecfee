"""setup.py, setup.cfg, uv's sources and workspaces: what a project's own files say, read as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports import common, pyproject, team_locks
from reprobuild.imports.projects import project_name, read_setup_py
from reprobuild.imports.reader import read_import, request_table

Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def _amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (common, pyproject, team_locks):
        monkeypatch.setattr(module, "architecture", lambda: "amd64")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def writer(name: str, text: str) -> Path:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return writer


def packages(file: Path, **given: Any) -> list[str]:
    found: list[str] = request_table(read_import(file, **given), {"cuda": "cpu"})["packages"]
    return found


SETUP = """
from setuptools import setup
REQUIRED = [
    "numpy<2",  # why
    "tqdm",
]
EXTRAS = {"plot": ["matplotlib"]}
setup(name="ours", python_requires=">=3.12", install_requires=REQUIRED, extras_require=EXTRAS)
"""


def test_a_setup_py_is_read_and_not_run(write: Write) -> None:
    file = write("setup.py", "import sys; sys.exit('was run')\n" + SETUP)
    imported = read_import(file, extras=["Plot"])
    table = request_table(imported, {"cuda": "cpu"})
    assert (table["name"], table["python"]) == ("ours", "3.13")
    assert table["packages"] == ["numpy<2", "tqdm", "matplotlib"]


@pytest.mark.parametrize(
    "change",
    [
        "REQUIRED.append('more')",
        "REQUIRED += ['more']",
        "REQUIRED = open('x').read().split()",
        "REQUIRED[0] = 'more'",
        "def later():\n    global REQUIRED\n    REQUIRED = ['more']",
    ],
)
def test_requirements_that_a_setup_py_changes_are_not_taken(write: Write, change: str) -> None:
    call = "setup(" + SETUP.partition("setup(")[2]
    file = write("setup.py", SETUP.replace(call, f"{change}\n{call}"))
    assert packages(file, extras=["plot"]) == ["ours[plot] @ .."]


@pytest.mark.parametrize(
    "text",
    ["setup(install_requires=read('requirements.txt'))", "setup()", "setup(**kwargs)", "setup(name=f())"],
)
def test_a_project_whose_build_alone_tells_what_it_requires(write: Write, text: str) -> None:
    assert packages(write("libs/setup.py", text)) == ["libs @ ../libs"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("setup(", "not valid Python"),
        ("x = 1", "has 0 calls of setup()"),
        ("(" * 5000 + ")" * 5000, "not valid Python"),
        ("\0", "not valid Python"),
        ("setup(name='a b')", "is not a requirement"),
    ],
)
def test_a_setup_py_that_cannot_be_read(write: Write, text: str, says: str) -> None:
    with pytest.raises(RequestError, match=re.escape(says)):
        read_import(write("setup.py", text))


def test_a_setup_cfg_with_files_and_extras(write: Write) -> None:
    write("needs.txt", "tqdm\n")
    file = write(
        "setup.cfg",
        "[metadata]\nname = ours\n[options]\ninstall_requires = file: needs.txt\npython_requires = >=3.9\n"
        "[options.extras_require]\nplot =\n    matplotlib\n",
    )
    assert packages(file, extras=["plot"]) == ["matplotlib", "tqdm"]
    write("setup.py", "from setuptools import setup\nsetup()")
    assert packages(file.with_name("setup.py")) == ["tqdm"]


def test_a_pyproject_of_tools_alone_leads_to_setup_py(write: Write) -> None:
    write("setup.py", SETUP)
    assert packages(write("pyproject.toml", "[build-system]\nrequires = ['setuptools']\n")) == [
        "numpy<2",
        "tqdm",
    ]


def test_dynamic_dependencies_that_setup_py_names(write: Write) -> None:
    write("setup.py", SETUP)
    file = write("pyproject.toml", "[project]\nname = 'ours'\ndynamic = ['dependencies']\n")
    assert packages(file) == ["numpy<2", "tqdm"]


def test_a_project_s_own_extras_among_its_extras(write: Write) -> None:
    file = write(
        "pyproject.toml",
        "[project]\nname = 'ours'\n[project.optional-dependencies]\n"
        "all = ['ours[plot]', 'tqdm']\nplot = ['matplotlib']\n",
    )
    assert packages(file, extras=["all"]) == ["tqdm", "matplotlib"]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("pyproject.toml", "[project]\nname = 'a-b'", "a-b"),
        ("pyproject.toml", "[tool.poetry]\nname = 'c'", "c"),
        ("setup.cfg", "[metadata]\nname = d", "d"),
        ("setup.py", "setup(name='e')", "e"),
        ("setup.py", "setup(name=read())", "project"),
    ],
)
def test_the_name_of_a_project(write: Write, name: str, text: str, wanted: str) -> None:
    assert project_name(write(f"project/{name}", text).parent) == wanted


def test_a_setup_call_s_name_alone() -> None:
    with pytest.raises(RequestError, match="no such file"):
        read_setup_py(Path("none/setup.py"))


# --- uv's sources ---

UV = """
[project]
name = "ours"
dependencies = ["torch==2.4.1", "repo[x]>=1", "wheel-of", "libs-x", "member", "plain"]
[tool.uv.sources]
torch = [
  {index = "cpu", marker = "sys_platform == 'darwin'"},
  {index = "gpu", marker = "sys_platform == 'linux'"},
]
repo = {git = "https://h.example/repo", branch = "dev", subdirectory = "py"}
wheel-of = {url = "https://h.example/wheel_of-1-py3-none-any.whl"}
libs-x = {path = "libs/x", editable = true}
member = {workspace = true}
[tool.uv.workspace]
members = ["packages/*"]
[[tool.uv.index]]
name = "gpu"
url = "https://download.HOST/whl/cu118"
explicit = true
[[tool.uv.index]]
name = "cpu"
url = "https://download.HOST/whl/cpu"
explicit = true
"""


def test_the_sources_of_uv(write: Write) -> None:
    write("libs/x/pyproject.toml", "[project]\nname = 'libs-x'\n")
    write("packages/one/pyproject.toml", "[project]\nname = 'one'\n")
    write("packages/two/pyproject.toml", "[project]\nname = 'Member'\n")
    file = write("pyproject.toml", UV.replace("HOST", "pytorch.org"))
    table = request_table(read_import(file), {})
    assert (table["index"], table["cuda"], table["torch"]) == ("pytorch", "11.8", "2.4.1")
    assert table["packages"] == [
        "repo[x] @ git+https://h.example/repo@dev#subdirectory=py",
        "wheel-of @ https://h.example/wheel_of-1-py3-none-any.whl",
        "libs-x @ ../libs/x",
        "member @ ../packages/two",
        "plain",
    ]


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ("a = {index = 'none'}", "no index is called 'none'"),
        ("a = {workspace = true}", "no pyproject.toml above has a workspace"),
        ("a = {}", "expected git, url, path, index or workspace"),
        ("a = 3", "expected a table"),
        ("a = {git = 3}", "expected text"),
        ("a = {git = 'x y'}", "is not a requirement"),
        ("a = {path = 'none'}", "no such folder"),
        ("a = {git = 'ext::sh -c x'}", "is not a requirement"),
        ("a = {git = 'file:///etc'}", "expected an address that starts with"),
        ("a = [{index = 'x', marker = '('}]", "marker"),
    ],
)
def test_sources_that_are_none(write: Write, sources: str, says: str) -> None:
    file = write(
        "pyproject.toml", f"[project]\nname = 'ours'\ndependencies = ['a']\n[tool.uv.sources]\n{sources}\n"
    )
    with pytest.raises(RequestError, match=re.escape(says)):
        read_import(file)


def test_an_index_of_uv_s_is_the_user_s_to_allow(write: Write) -> None:
    file = write(
        "pyproject.toml",
        "[project]\nname = 'ours'\ndependencies = ['a']\n[[tool.uv.index]]\nurl = 'https://index.example/simple'\n",
    )
    with pytest.raises(
        RequestError, match=r"tool\.uv\.index\[0\]: --extra-index-url: the index is a setting"
    ):
        read_import(file)
    assert read_import(file, hosts=["index.example"]).settings == {
        "UV_INDEX": ("https://index.example/simple",)
    }


def test_a_submodule_that_is_not_checked_out(write: Write, tmp_path: Path) -> None:
    write(".gitmodules", '[submodule "a"]\n\tpath = libs/a\n\turl = https://example.org/a\n')
    file = write("sub/requirements.txt", "../libs/a\n")
    with pytest.raises(RequestError, match=r"libs/a: is a git submodule that is not checked out") as caught:
        read_import(file)
    assert caught.value.hint.endswith(" submodule update --init libs/a`")
    assert f"git -C {tmp_path}" in caught.value.hint
    (tmp_path / "libs/a").mkdir(parents=True)  # as git leaves it
    with pytest.raises(RequestError, match=r"libs/a: is a git submodule that is not checked out"):
        read_import(file)
