"""setup.py, setup.cfg, uv's sources and workspaces: what a project's own files say, read as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.projects import project_name, read_setup_py
from reprobuild.imports.recognize import read_import
from support.fixtures import fixtures_of
from support.team_files import Write

globals().update(fixtures_of("support.team_files"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("setup(", "not valid Python"),
        ("x = 1", "has 0 calls of setup()"),
        ("(" * 5000 + ")" * 5000, "not valid Python"),
        ("-" * 100_000 + "1", "not valid Python: "),
        ("\0", "has null characters"),
        ("setup(name='a b')", "is not a requirement"),
    ],
)
def test_a_setup_py_that_cannot_be_read(write: Write, text: str, says: str) -> None:
    with pytest.raises(RequestError, match=re.escape(says)):
        read_import(write("setup.py", text))


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("pyproject.toml", "[project]\nname = 'a-b'", "a-b"),
        ("pyproject.toml", "[tool.poetry]\nname = 'c'", "c"),
        ("setup.cfg", "[metadata]\nname = d", "d"),
        ("setup.py", "setup(name='e')", "e"),
        ("setup.py", "setup(name=read())", "pro-ject"),
        ("setup.py", "setup(name='e+f_g')", "e-f-g"),
        ("setup.py", "setup(name='e_f.g')", "e_f.g"),
    ],
)
def test_the_name_of_a_project(write: Write, name: str, text: str, wanted: str) -> None:
    assert project_name(write(f"pro+ject/{name}", text).parent) == wanted


def test_a_setup_call_s_name_alone() -> None:
    with pytest.raises(RequestError, match="no such file"):
        read_setup_py(Path("none/setup.py"))


# --- uv's sources ---
