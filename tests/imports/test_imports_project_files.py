"""What the author of an imported file can reach, and have printed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports import project_files
from reprobuild.imports.recognize import read_import

PROJECT = "[project]\nname = 'x'\ndynamic = ['dependencies']\n"
SECRET = "root:$6$verysecret:19000::"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "shadow").write_text(SECRET)
    monkeypatch.chdir(folder)
    return folder


def refused(file: Path) -> str:
    with pytest.raises(RequestError) as error:
        read_import(file)
    said = f"{error.value.message} {error.value.hint}"
    assert "secret" not in said
    return said


@pytest.mark.parametrize("line", ["-r ../shadow", "-c ../shadow", "-r link", "--requirement=../shadow"])
def test_a_file_outside_the_project_is_not_read(project: Path, line: str) -> None:
    (project / "link").symlink_to("../shadow")
    file = project / "requirements.txt"
    file.write_text(line)
    assert "leads out of the project" in refused(file)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", f"{PROJECT}[tool.setuptools.dynamic]\ndependencies = {{file = ['../shadow']}}\n"),
        ("setup.cfg", "[metadata]\nname = x\n[options]\ninstall_requires = file: ../shadow\n"),
    ],
)
def test_nor_is_one_that_a_project_names(project: Path, name: str, text: str) -> None:
    (project / name).write_text(text)
    assert "leads out of the project" in refused(project / name)


@pytest.mark.parametrize("name", ["requirements.txt", "uv.lock", "poetry.lock", "pyproject.toml", "setup.py"])
def test_nor_is_a_link_in_the_place_of_the_file(project: Path, name: str) -> None:
    (project / name).symlink_to("../shadow")
    assert "leads out of the project" in refused(project / name)


def test_what_belongs_to_the_repository_is_read(project: Path) -> None:
    (project / ".git").mkdir()
    (project / "deep/er").mkdir(parents=True)
    (project / "base.txt").write_text("humanise==1.0")
    (project / "deep/er/dev.txt").write_text("-r ../../base.txt")
    assert [str(each) for each in read_import(project / "deep/er/dev.txt").requirements] == ["humanise==1.0"]


@pytest.mark.parametrize("line", ["-r private", "-c private", "-r more.txt"])
def test_no_line_of_an_included_file_is_quoted(project: Path, line: str) -> None:
    (project / "private").write_text(SECRET)
    (project / "more.txt").write_text("-r private")
    (project / "requirements.txt").write_text(line)
    assert "private:1: a line of an included file" in refused(project / "requirements.txt")


def test_only_regular_files_are_read(project: Path) -> None:
    os.mkfifo(project / "pipe.txt")
    (project / "requirements.txt").write_text("-r pipe.txt")
    assert "cannot be read" in refused(project / "requirements.txt")
    (project / "zero.txt").symlink_to("/dev/zero")
    assert "leads out of the project" in refused(project / "zero.txt")


def test_a_file_has_a_limit(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "MOST_BYTES", 1 << 20)
    (project / "requirements.txt").write_text("#" * ((1 << 20) + 1))
    assert "has more than 1 MiB" in refused(project / "requirements.txt")


@pytest.mark.parametrize(
    "text", [r"a; platform_version == 'x\n--index-url=y'", r"a; platform_version == 'x\r'"]
)
def test_a_marker_with_a_line_break_is_refused(project: Path, text: str) -> None:
    """uv would read the rest as a line of its own, with the options that it has."""
    (project / "requirements.txt").write_text(text)
    assert "a line break" in refused(project / "requirements.txt")


@pytest.mark.parametrize(
    "text", ["a{}b", "a @{}https://x.example/a-1-py3-none-any.whl", "a ;{}python_version > '3'", "./x{}y"]
)
def test_blanks_take_no_time(project: Path, text: str) -> None:
    (project / "requirements.txt").write_text(text.format(" " * 100_000))
    start = time.process_time()
    with suppress(RequestError):
        read_import(project / "requirements.txt")
    assert time.process_time() - start < 5


def test_a_path_longer_than_any_is_refused(project: Path) -> None:
    (project / "requirements.txt").write_text("./" + "x" * 5000)
    assert "a path of more than 4,095 characters" in refused(project / "requirements.txt")
    (project / "requirements.txt").write_text("./" + "x" * 300)
    refused(project / "requirements.txt")


@pytest.mark.parametrize(
    "text", ["b @ https://x.[]y/b-1.zip", "https://x.[]y/b-1.zip", "~nosuchuser/x", "file://[x"]
)
def test_an_address_that_is_none_is_refused_in_words(project: Path, text: str) -> None:
    (project / "requirements.txt").write_text(text)
    assert "is not a" in refused(project / "requirements.txt")
