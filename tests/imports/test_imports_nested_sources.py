"""The sources that the folders of a uv project name for their own dependencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of

globals().update(fixtures_of("support.team_files"))

GIT = 'foo = { git = "https://git.example/foo" }'


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def _project(folder: Path, name: str, needs: str, more: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = f'[project]\nname = "{name}"\nversion = "1"\ndependencies = {needs}\n{more}\n'
    (folder / "pyproject.toml").write_text(text)


def test_a_folder_names_the_source_of_its_own_dependency(tmp_path: Path) -> None:
    # Without it, a stranger's `foo` on the index would be taken: uv takes the one that the folder names.
    _project(tmp_path, "ours", '["a[x]", "six"]', '[tool.uv.sources]\na = { path = "a" }\n')
    extra = '[project.optional-dependencies]\nx = ["b"]\ny = ["bar"]\n'
    sources = (
        f'[tool.uv.sources]\n{GIT}\nb = {{ path = "../b" }}\nbar = {{ url = "https://bar.example/x.zip" }}'
    )
    _project(tmp_path / "a", "a", '["foo>=1", "six"]', f"{extra}{sources}\n")
    index = '[[tool.uv.index]]\nname = "t"\nurl = "https://packages.pytorch.org/whl/cpu"\n'
    sources = '[tool.uv.sources]\na = { path = "../a" }\ntorch = { index = "t" }\n'
    _project(tmp_path / "b", "b", '["a", "torch"]', sources + index)
    found = read_import(tmp_path / "pyproject.toml")
    keys = request_table(found, {})
    assert set(keys["packages"]) == {
        "a[x] @ ../a",
        "six",
        "foo @ git+https://git.example/foo",
        "b @ ../b",
        "a @ ../a",
    }
    assert (keys["index"], keys["cuda"]) == ("pytorch", "cpu")
    assert f"{tmp_path / 'a/pyproject.toml'}: foo is from git+https://git.example/foo" in found.applied


def test_a_member_of_a_workspace_has_the_sources_of_its_root(tmp_path: Path) -> None:
    root = (
        f'[tool.uv.workspace]\nmembers = ["libs/*"]\n[tool.uv.sources]\n{GIT}\nm = {{ workspace = true }}\n'
    )
    _project(tmp_path, "ours", '["m"]', root)
    _project(tmp_path / "libs/m", "m", '["foo"]', "")
    keys = request_table(read_import(tmp_path / "pyproject.toml"), {"cuda": "cpu"})
    assert keys["packages"] == ["m @ ../libs/m", "foo @ git+https://git.example/foo"]


def test_the_settings_of_a_uv_toml_go_before_those_of_the_project(tmp_path: Path) -> None:
    # uv itself: of both files the index of uv.toml and the constraints of the project count.
    table = '[tool.uv]\nresolution = "lowest"\nconstraint-dependencies = ["idna<3"]\n'
    _project(tmp_path, "ours", '["six"]', table)
    (tmp_path / "uv.toml").write_text(
        'constraint-dependencies = ["idna<2"]\nexclude-newer = "2024-01-01"\n'
        '[[index]]\nurl = "https://index.example/simple"\ndefault = true\n'
    )
    found = read_import(tmp_path / "pyproject.toml", hosts={"index.example"})
    assert found.settings == {"UV_DEFAULT_INDEX": ("https://index.example/simple",)}
    assert (found.constraints, found.ignored, str(found.exclude_newer)) == (("idna<3",), (), "2024-01-01")
