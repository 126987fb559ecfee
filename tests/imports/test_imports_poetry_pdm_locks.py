"""poetry.lock and pdm.lock → their pins and hashes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import Write

globals().update(fixtures_of("support.team_files"))


def packages(file: Path, **given: Any) -> list[str]:
    found: list[str] = request_table(read_import(file, **given), {"cuda": "11.8"})["packages"]
    return found


HASH = "sha256:" + "a" * 64


PROJECT = """
[tool.poetry]
name = "ours"
[tool.poetry.dependencies]
python = "^3.11"
numpy = "*"
mac = {version = "*", markers = "sys_platform == 'darwin'"}
plots = {version = "*", optional = true}
[tool.poetry.extras]
draw = ["plots"]
[tool.poetry.group.dev.dependencies]
pytest = "*"
"""

OLD = f"""
[[package]]
name = "numpy"
version = "1.26.4"
optional = false
files = [{{file = "numpy-1.26.4.whl", hash = "{HASH}"}}]
[package.dependencies]
tqdm = {{version = ">=4", markers = "python_version >= '3.9'"}}
windows = {{version = "*", markers = "sys_platform == 'win32'"}}
extra-of-it = {{version = "*", optional = true}}
[[package]]
name = "tqdm"
version = "4.0"
[package.dependencies]
repo = "*"
[[package]]
name = "repo"
version = "0.1"
[package.source]
type = "git"
url = "https://h.example/repo.git"
reference = "main"
resolved_reference = "{"c" * 40}"
[[package]]
name = "windows"
version = "1"
[[package]]
name = "extra-of-it"
version = "1"
[[package]]
name = "mac"
version = "1"
[[package]]
name = "plots"
version = "2"
optional = true
[[package]]
name = "pytest"
version = "8"
[metadata]
lock-version = "2.0"
python-versions = "^3.11"
"""


def test_an_older_poetry_lock_is_followed_from_its_project(write: Write) -> None:
    write("pyproject.toml", PROJECT)
    file = write("poetry.lock", OLD)
    assert packages(file) == [
        "numpy==1.26.4",
        f"repo @ git+https://h.example/repo.git@{'c' * 40}",
        "tqdm==4.0",
    ]
    more = packages(file, extras=["draw"], groups=["dev"])
    assert {"plots==2", "pytest==8"} <= set(more)
    assert read_import(file).hashes == {"numpy": frozenset({"a" * 64})}
    assert read_import(file).requires_python == "<4,>=3.11"
    # Poetry 1.4 and older: a category is no group, since it says nothing of markers.
    windows = '[[package]]\nname = "windows"\nversion = "1"\ncategory = "main"\n'
    file = write("poetry.lock", windows + re.sub(r'(version = "[^"]*"\n)', r'\1category = "main"\n', OLD))
    assert packages(file)[0] == "numpy==1.26.4"
    assert not [each for each in packages(file) if each.startswith("windows")]


def test_an_older_poetry_lock_is_followed_into_the_extras_of_its_packages(write: Write) -> None:
    """google-api-core[grpc]: grpcio was left to the index, which had a newer one."""
    write("pyproject.toml", PROJECT + '[project]\nname = "ours"\ndependencies = ["api[rpc,none]", "tool"]\n')
    lock = """
[[package]]
name = "api"
version = "2"
[package.dependencies]
grpcio = {version = ">=1", optional = true, markers = "python_version >= '3' and extra == 'rpc'"}
old-grpcio = {version = ">=1", optional = true, markers = "python_version < '3' and extra == 'rpc'"}
wire = {version = ">=1", optional = true, extras = ["fast"]}
other = {version = ">=1", optional = true, markers = "extra == 'more'"}
[package.extras]
rpc = ["grpcio (>=1,<2.0dev)", "old.grpcio (>=1)", "wire[fast] (>=1)"]
more = ["other"]
[[package]]
name = "tool"
version = "1"
[package.dependencies]
wire = ">=1"
[[package]]
name = "wire"
version = "3"
[package.dependencies]
speed = {version = "*", optional = true}
[package.extras]
fast = ["speed"]
"""
    for name in ("grpcio", "old-grpcio", "other", "speed"):
        lock += f'[[package]]\nname = "{name}"\nversion = "1.69"\n'
    found = packages(write("poetry.lock", lock + OLD))
    assert {"api==2", "grpcio==1.69", "wire==3", "speed==1.69", "tool==1"} <= set(found)
    assert not {"other==1.69", "old-grpcio==1.69"} & set(found)


def test_an_older_poetry_lock_without_its_project(write: Write) -> None:
    with pytest.raises(RequestError, match=r"no pyproject\.toml is beside it"):
        read_import(write("poetry.lock", OLD))


def test_a_lock_that_lacks_what_its_project_asks_for(write: Write) -> None:
    write("pyproject.toml", PROJECT.replace("numpy", "new"))
    with pytest.raises(RequestError, match="lacks new"):
        read_import(write("poetry.lock", OLD))


NEW = """
[[package]]
name = "numpy"
version = "1.26.4"
groups = ["main", "dev"]
[[package]]
name = "torch"
version = "2.4.1+cu118"
groups = ["main"]
markers = "sys_platform == 'linux'"
[package.source]
type = "legacy"
url = "https://download.HOST/whl/cu118"
reference = "pytorch"
[[package]]
name = "torch"
version = "2.4.1"
groups = ["main"]
markers = "sys_platform == 'darwin'"
[[package]]
name = "pytest"
version = "8"
groups = ["dev"]
[[package]]
name = "plots"
version = "2"
optional = true
groups = ["main"]
markers = "extra == 'draw'"
[[package]]
name = "split"
version = "3"
groups = ["main", "dev"]
markers = {main = "sys_platform == 'win32'", dev = "python_version > '3'"}
[metadata]
lock-version = "2.1"
python-versions = ">=3.11"
"""


def test_a_newer_poetry_lock_says_what_is_for_whom(write: Write) -> None:
    file = write("poetry.lock", NEW.replace("HOST", "pytorch.org"))
    table = request_table(read_import(file), {})
    assert (table["index"], table["cuda"], table["torch"]) == ("pytorch", "11.8", "2.4.1+cu118")
    assert table["packages"] == ["numpy==1.26.4"]
    assert packages(file, extras=["draw"]) == ["numpy==1.26.4", "plots==2"]
    assert packages(file, groups=["dev"]) == ["numpy==1.26.4", "pytest==8", "split==3"]


PDM = f"""
[metadata]
groups = ["default", "dev"]
lock_version = "4.5"
requires_python = ">=3.11"
[[package]]
name = "numpy"
version = "1.26.4"
groups = ["default"]
files = [{{file = "numpy-1.26.4.whl", hash = "{HASH}"}}]
[[package]]
name = "plots"
version = "2"
extras = ["all"]
groups = ["default"]
marker = "python_version > '3'"
[[package]]
name = "mac"
version = "2"
groups = ["default"]
marker = "sys_platform == 'darwin'"
[[package]]
name = "repo"
version = "0.1"
groups = ["dev"]
git = "https://h.example/repo.git"
revision = "{"c" * 40}"
"""


def test_a_pdm_lock(write: Write) -> None:
    file = write("pdm.lock", PDM)
    assert packages(file) == ["numpy==1.26.4", "plots[all]==2"]
    assert f"repo @ git+https://h.example/repo.git@{'c' * 40}" in packages(file, groups=["dev"])
    assert read_import(file).hashes == {"numpy": frozenset({"a" * 64})}


@pytest.mark.parametrize(
    ("targets", "project", "python"),
    [
        ('requires_python = ">=3.12"', "", "3.13"),
        ('platform = "windows"\n[[metadata.targets]]\nrequires_python = "==3.10.*"', "", "3.10"),
        ("", ">=3.12", "3.13"),
        ('requires_python = ">=3.9"', ">=3.9,<3.11", "3.10"),
    ],
)
def test_the_pythons_of_a_pdm_lock_are_those_of_its_targets_and_its_project(
    write: Write, targets: str, project: str, python: str
) -> None:
    if project:
        write(
            "pyproject.toml",
            f'[project]\nname = "x"\ndependencies = ["numpy"]\nrequires-python = "{project}"\n',
        )
    head = f"[[metadata.targets]]\n{targets}" if targets else ""
    text = f'[[package]]\nname = "numpy"\nversion = "2"\ngroups = ["default"]\n[metadata]\n{head}\n'
    assert request_table(read_import(write("pdm.lock", text)), {"cuda": "cpu"})["python"] == python


def test_a_pdm_lock_for_other_systems(write: Write) -> None:
    targets = '[[metadata.targets]]\nplatform = "windows"\n[[metadata.targets]]\nplatform = "macos_arm64"\n'
    with pytest.raises(RequestError, match="is for windows, macos_arm64, not for CPython on Linux"):
        read_import(write("pdm.lock", f"{targets}[metadata]\n"))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("poetry.lock", "package = 3", "expected a list of tables"),
        ("poetry.lock", "[[package]]\nname = 3", "expected a name"),
        ("poetry.lock", "[[package]]\nname = 'a'\nversion = '1'\ngroups = 3", "expected a list of text"),
        ("poetry.lock", "[[package]]\nname = 'a'\nversion = '1'\nfiles = 3", "expected a list of tables"),
        ("poetry.lock", "[[package]]\nname = 'a'\nversion = '1'\ndependencies = 3", "expected a table"),
        ("poetry.lock", "[[package]]\nname = 'a'\nversion = '1'\nsource = 3", "expected a table"),
        ("poetry.lock", "[[package]]\nname = 'a b'\nversion = '1'", "is not a requirement"),
        (
            "poetry.lock",
            "[[package]]\nname='a'\nversion='1'\ngroups=['main']\nmarkers='('",
            "is not a marker",
        ),
        ("poetry.lock", "[[package]]\nname='a'\nversion='1'\ngroups=['dev']", "no package is for the group"),
        ("pdm.lock", "metadata = 3", "expected a table"),
        ("pdm.lock", "a = " + "[" * 100_000, "not valid TOML"),
    ],
)
def test_locks_that_are_none(write: Write, name: str, text: str, says: str) -> None:
    with pytest.raises(RequestError, match=re.escape(says)) as caught:
        read_import(write(name, text))
    assert name in caught.value.message


def test_a_package_of_two_groups_counts_for_the_one_without_a_marker(tmp_path: Path) -> None:
    # As Poetry writes it for what an extra of the project needs, and a group in any case.
    (tmp_path / "poetry.lock").write_text(
        '[[package]]\nname = "six"\nversion = "1"\noptional = true\ngroups = ["main", "g"]\nfiles = []\n'
        "markers = { main = \"extra == 'x'\" }\n"
        '[[package]]\nname = "idna"\nversion = "1"\noptional = false\ngroups = ["main"]\nfiles = []\n'
        '[extras]\nx = ["six"]\n[metadata]\nlock-version = "2.1"\npython-versions = "*"\n'
    )
    (tmp_path / "pyproject.toml").write_text(
        '[tool.poetry]\nname = "ours"\n[tool.poetry.dependencies]\nidna = "*"\n'
        'six = { version = "*", optional = true }\n[tool.poetry.extras]\nx = ["six"]\n'
        '[tool.poetry.group.g.dependencies]\nsix = "*"\n'
    )
    for extras, groups, names in (
        ((), (), ["idna"]),
        (("x",), (), ["idna", "six"]),
        ((), ("g",), ["idna", "six"]),
    ):
        found = read_import(tmp_path / "poetry.lock", extras=extras, groups=groups)
        assert [each.name for each in found.requirements] == names
