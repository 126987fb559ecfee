"""Addresses, repositories and folders that a line names."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.imports.recognize import read_import
from support.fixtures import fixtures_of
from support.team_files import Write, table

globals().update(fixtures_of("support.team_files"))


def test_addresses_as_pip_takes_them(write: Write, tmp_path: Path) -> None:
    (tmp_path / "libs/x").mkdir(parents=True)
    (tmp_path / "libs/x/setup.py").write_text("from setuptools import setup\nsetup(name='Our.X')")
    file = write(
        "requirements.txt",
        "-e git+https://h.example/team/taming.git@master#egg=taming-transformers\n"
        "git+https://h.example/team/b@v1#subdirectory=py\n"
        "clip @ git+https://h.example/c.git\n"
        "-e ./libs/x[more]\n"
        "https://h.example/w/gradio-4.37.2%2Bcustom.20-py3-none-any.whl ; python_version > '3'\n"
        "https://h.example/w/later-1-py3-none-any.whl; python_version > '4'\n"
        "https://h.example/w/old_name-1.0.tar.gz#sha256=" + "a" * 64 + "\ntorch==2.4.1+cpu\n",
    )
    assert [f"{r.name} {r.url}" for r in read_import(file).requirements if r.url] == [
        "taming-transformers git+https://h.example/team/taming.git@master",
        "b git+https://h.example/team/b@v1#subdirectory=py",
        "clip git+https://h.example/c.git",
        f"Our.X file://{tmp_path}/libs/x",
        "gradio https://h.example/w/gradio-4.37.2%2Bcustom.20-py3-none-any.whl",
        "later https://h.example/w/later-1-py3-none-any.whl",
        "old-name https://h.example/w/old_name-1.0.tar.gz#sha256=" + "a" * 64,
    ]


def test_a_folder_that_is_none_beside_the_file_is_one_of_the_working_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip takes it: `uv export -o requirements/all.txt` writes `-e .` for the project above."""
    (tmp_path / "requirements").mkdir()
    write("pyproject.toml", "[project]\nname = 'ours'\n")
    file = write("requirements/all.txt", "-e .\n")
    monkeypatch.chdir(tmp_path)
    assert [str(each) for each in read_import(file).requirements] == [f"ours @ {tmp_path.resolve().as_uri()}"]
    write("requirements/pyproject.toml", "[project]\nname = 'inner'\n")
    assert [each.name for each in read_import(file).requirements] == ["inner"]


def test_a_folder_is_named_from_the_request(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.cfg").write_text("[metadata]\nname = ours\n")
    file = write("requirements.txt", "-e .\ntorch==2.4.1+cpu\n")
    assert table(file)["packages"] == ["ours @ .."]
