"""environment.yml as found in the wild: pip's lines, channels that conda-forge stands in for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from reprobuild.lock.conda_lock import read_environment
from support.fixtures import fixtures_of
from support.team_files import Write

globals().update(fixtures_of("support.team_files"))


WILD = """\
name: ldm
channels:
  - pytorch
  - defaults
dependencies:
  - python=3.8.5
  - pip=20.3
  - cudatoolkit=11.3
  - pytorch::pytorch=1.11.0=py3.8_cuda11.3_cudnn8.2.0_0
  - numpy=1.19.2
  - pip:
    - einops==0.3.0
    - -r more.txt
    - -e git+https://h.example/team/taming.git@master#egg=taming
    - "clip @ git+https://h.example/clip.git"
    - -e .
prefix: /home/me/miniconda3/envs/ldm
"""


def test_an_environment_as_they_are(write: Write) -> None:
    write("more.txt", "pandas<2\n")
    write("setup.py", "from setuptools import setup\nsetup(name='ldm-code')")
    file = write("environment.yaml", WILD)
    with pytest.raises(RequestError, match="'defaults' is not a channel") as caught:
        read_import(file)
    assert "--loosen pytorch --loosen defaults" in caught.value.hint
    table = request_table(read_import(file, loosen=["pytorch", "defaults"]), {})
    assert (table["python"], table["cuda"]) == ("3.8", "11.3")
    assert table["conda"] == {
        "channels": ["conda-forge"],
        "packages": ["python 3.8.5.*", "pip", "cuda-version 11.3.*", "pytorch 1.11.0", "numpy 1.19.2.*"],
    }
    assert sorted(table["packages"]) == [
        "clip @ git+https://h.example/clip.git",
        "einops==0.3.0",
        "ldm-code @ ..",
        "pandas<2",
        "taming @ git+https://h.example/team/taming.git@master",
    ]
    assert "defaults" in table["loosened"]
    assert any(text.startswith("pytorch::pytorch") for text in table["loosened"])


def test_a_request_s_own_environment_has_no_lines_of_pip_s(write: Write) -> None:
    with pytest.raises(RequestError, match="is not a package of an index"):
        read_environment(write("environment.yml", WILD), "linux/amd64")


def test_an_environment_without_channels(write: Write) -> None:
    with pytest.raises(RequestError, match="channels: missing") as caught:
        read_import(write("environment.yml", "dependencies: [python]\n"))
    assert "channels: [conda-forge]" in caught.value.hint


@pytest.mark.parametrize("line", ["-e ./none", "--frobnicate", "-r none.txt", "a @ https://h.example/a"])
def test_a_line_for_pip_that_cannot_be_taken(write: Write, line: str) -> None:
    file = write("environment.yml", f"channels: [conda-forge]\ndependencies:\n  - pip:\n    - {line}\n")
    with pytest.raises(RequestError, match=re.escape(str(file.parent))):
        read_import(file)


def test_a_selector_beside_pip_s_lines_still_counts(write: Write) -> None:
    file = write(
        "environment.yml",
        "channels: [conda-forge]\ndependencies:\n  - windows-thing  # [win]\n  - cuda-version=12.1\n"
        "  - pip:\n    - a @ git+https://h.example/a\n",
    )
    assert request_table(read_import(file), {})["conda"]["packages"] == ["cuda-version 12.1.*"]


def test_a_marker_of_pip_s_lines_counts(write: Write) -> None:
    file = write(
        "environment.yml",
        "channels: [conda-forge]\ndependencies:\n  - python=3.11\n  - cuda-version=12.1\n  - pip:\n"
        "    - tomli==2.0 ; python_version < '3.11'\n    - idna==3.7 ; python_version >= '3.11'\n"
        "    - anyio==4.4 ; python_version >= '3.11'  # [win]\n"
        "    - colorama==0.4 ; sys_platform == 'win32'\n",
    )
    assert request_table(read_import(file), {})["packages"] == ["idna==3.7"]


def test_a_folder_for_pip_needs_no_dot(write: Write, tmp_path: Path) -> None:
    (tmp_path / "libs/x").mkdir(parents=True)
    write("libs/x/setup.py", "from setuptools import setup\nsetup(name='x-code')")
    listed = "dependencies:\n- python=3.11\n- pip:\n  - libs/x\n  - idna\n"
    file = write("environment.yml", f"channels: [conda-forge]\n{listed}")
    assert sorted(each.name for each in read_import(file).requirements) == ["idna", "x-code"]


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"NCCL_DEBUG": "INFO", "WORKERS": 4}, ""),
        ({"PYTHONHASHSEED": "0"}, "environment.yml: variables: environment.PYTHONHASHSEED: reprobuild sets"),
        ({"LD_LIBRARY_PATH": "/x"}, "LD_LIBRARY_PATH runs other code before every program"),
        ({"DATA": "$HOME/data"}, "environment.DATA: .* in it"),
        ({"SHARE": 0.5}, "environment.SHARE: expected one line of text in quotes"),
        ([], ""),
        (["A"], "variables: expected a table"),
    ],
)
def test_variables_are_those_of_the_request(write: Write, variables: object, says: str) -> None:
    text = "channels: [conda-forge]\ndependencies: [python=3.11]\n"
    file = write("environment.yml", f"{text}variables: {json.dumps(variables)}\n")
    if says:
        with pytest.raises(RequestError, match=says):
            read_import(file)
        return
    table = request_table(read_import(file), {"cuda": "cpu"})
    assert table.get("environment", {}) == ({"NCCL_DEBUG": "INFO", "WORKERS": "4"} if variables else {})
    with pytest.raises(RequestError, match="variables: not imported"):
        read_environment(file, "linux/amd64")
