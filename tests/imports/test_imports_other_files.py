"""Scripts with inline metadata, MLflow's files, text of other encodings, and files of other tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of

globals().update(fixtures_of("support.team_files"))

SCRIPT = """#!/usr/bin/env python3
# /// script
# requires-python = "==3.12.*"
# dependencies = [
#   "six<2",
#
#   "torch==2.4.1",
# ]
# [tool.uv]
# constraint-dependencies = ["idna<3.5"]
# ///
import six
from support.fixtures import fixtures_of
"""


@pytest.mark.parametrize("lines", ["# /// script\n" * 300_000, "# /// script\n#\n" * 150_000 + "x\n"])
def test_a_block_without_end_is_looked_at_once(tmp_path: Path, lines: str) -> None:
    (tmp_path / "train.py").write_text(lines)
    with pytest.raises(RequestError, match=r"train\.py"):
        read_import(tmp_path / "train.py")
    (tmp_path / "train.py").write_text(lines + SCRIPT.replace("#!", "x = 1  #"))
    assert read_import(tmp_path / "train.py").python == "3.12"


def test_a_script_says_what_it_requires(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert request_table(read_import(tmp_path / "train.py"), {"cuda": "cpu"}) == {
        "name": "train",
        "python": "3.12",
        "cuda": "cpu",
        "torch": "2.4.1",
        "packages": ["six<2"],
        "constraints": ["idna<3.5"],
    }
    (tmp_path / "train.py").write_text(SCRIPT + SCRIPT)
    with pytest.raises(RequestError, match="has 2 blocks"):
        read_import(tmp_path / "train.py")


def test_mlflows_python_env_is_read_with_the_file_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("six==1.16.0\n")
    file = tmp_path / "python_env.yaml"
    file.write_text("python: 3.10.14\nbuild_dependencies:\n- pip==24\ndependencies:\n- -r requirements.txt\n")
    found = read_import(file)
    assert (found.python, [str(each) for each in found.requirements]) == ("3.10", ["six==1.16.0"])
    assert found.ignored == (f"{file}: build_dependencies is ignored: nothing is built with it",)
    for text, says in (
        ("[]", "dependencies: "),
        ("{", "not valid YAML"),
        ("dependencies: [six]", "python: ''"),
    ):
        file.write_text(text)
        with pytest.raises(RequestError, match=says):
            read_import(file)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffsix==1.16.0 # ü\r\nidna\r\n".encode(encoding))
    assert [str(each) for each in read_import(tmp_path / "a.txt").requirements] == ["six==1.16.0", "idna"]
    (tmp_path / "a.txt").write_bytes("six==1.16.0\r\nidna\r\n".encode(encoding))
    if encoding != "utf-8":
        with pytest.raises(RequestError, match=r"a\.txt: .* UTF-16 or UTF-32 with a byte-order mark"):
            read_import(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pixi.lock", "pixi workspace export conda-environment"),
        ("train.py.lock", "uv export --script"),
        ("Pipfile", "pipenv lock"),
        ("Dockerfile", "--from-image docker:NAME"),
        ("gpu.Dockerfile", "--from-image docker:NAME"),
        ("Containerfile.cpu", "--from-image docker:NAME"),
        ("default.lock", "pex3 lock export"),
        ("bentofile.yaml", "python.requirements_txt"),
        ("cog.yaml", "build.python_requirements"),
        ("compose.yml", "the requirements file that its image installs"),
        ("MLproject", "python_env.yaml"),
        ("apt.txt", "--apt"),
        ("runtime.txt", "--python"),
        ("x.json", "supported, by name"),
        ("x.py", "supported, by name"),
    ],
)
def test_a_file_of_another_tool_is_named_with_its_export(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / name).write_text("x = 1\n")
    with pytest.raises(RequestError, match="not a file that can be imported") as caught:
        read_import(tmp_path / name)
    assert says in (caught.value.hint or "")


def test_where_conda_has_built_a_package_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("six==1.16.0\nidna @ file:///croot/idna_1714398848350/work\n")
    with pytest.raises(RequestError, match=r"a\.txt:2: idna: no such file or folder: /croot/idna") as caught:
        read_import(tmp_path / "a.txt")
    assert "pip list --format=freeze" in (caught.value.hint or "")


def test_debian_packages_beside_a_requirements_file_are_named_and_no_python_packages(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("six\n")
    (tmp_path / "packages.txt").write_text("# for audio\nffmpeg\nlibgl1 g++\n")
    (line,) = read_import(tmp_path / "requirements.txt").ignored
    assert line == (
        f"{tmp_path}/packages.txt: lists Debian packages, which are not taken: "
        "give --apt ffmpeg --apt libgl1 --apt g++"
    )
    with pytest.raises(RequestError, match=r"packages\.txt: lists Debian packages") as caught:
        read_import(tmp_path / "packages.txt")
    assert "--apt ffmpeg --apt libgl1" in (caught.value.hint or "")
    (tmp_path / "packages.txt").write_bytes(b"\xff\xfe\xfd")
    assert read_import(tmp_path / "requirements.txt").ignored == ()
    (tmp_path / "packages.txt").write_text("six==1.16.0\n")
    assert read_import(tmp_path / "requirements.txt").ignored == ()
    (tmp_path / "requirements.txt").unlink()
    assert [str(each) for each in read_import(tmp_path / "packages.txt").requirements] == ["six==1.16.0"]
