"""What a project takes from elsewhere than an index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import Write

globals().update(fixtures_of("support.team_files"))


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


def test_the_folder_of_the_project_by_its_variable(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg/pyproject.toml").write_text("[project]\nname = 'pkg'\nversion = '1'\n")
    (folder / "pyproject.toml").write_text(
        "[project]\nname = 'own'\ndependencies = ['pkg @ file:///${PROJECT_ROOT}/pkg']\n"
    )
    (found,) = read_import(folder / "pyproject.toml").requirements
    assert found.url == (folder / "pkg").as_uri()
