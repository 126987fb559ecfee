"""What is built from this tree is whole: sdist, wheel, and what the README's first command installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import uv

from conftest import GOLDEN
from reprobuild.pipeline.workspace import read_lock
from reprobuild.render.dockerfile import render
from reprobuild.render.own_files import own_files
from reprobuild.render.program import selftest_program

pytestmark = pytest.mark.slow  # hatchling and the dependencies come from the user's index

TOP = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
SHIPPED = (
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "LICENSE",
    "README.md",
    "pyproject.toml",
)


def files(*folders: str) -> set[str]:
    """The files of some folders of the tree, without what running it leaves there."""
    found = (path.relative_to(TOP) for folder in folders for path in (TOP / folder).rglob("*"))
    return {
        str(path)
        for path in found
        if (TOP / path).is_file()
        and not {"__pycache__", ".hypothesis"} & {*path.parts}
        and not path.match("envs/pylock.*")  # what the README's first command writes, with the user's index
    }


def clean_environment() -> dict[str, str]:
    """The user's settings, without what would let a program find this tree."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run(argv: list[str | Path], cwd: Path, env: Mapping[str, str]) -> str:
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    run([uv.find_uv_bin(), "build", "--quiet", "--out-dir", out, TOP], out, clean_environment())
    return out


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that the README's first command installs, whose tree is gone since."""
    tree = tmp_path_factory.mktemp("install") / "reprobuild"
    shutil.copytree(TOP, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "dist", "build"))
    shutil.copy(TOP / ".gitignore", tree)
    [first] = re.findall(r"^apt-get update && .*", (TOP / "README.md").read_text(), re.MULTILINE)
    make, install = first.split(" && ")[2:4]
    assert (make, install) == ("python3 -m venv .venv", ".venv/bin/pip install .")
    run(["bash", "-c", f"{make} && {install}"], tree, clean_environment())
    for name in ("src", "templates", "envs"):
        shutil.rmtree(tree / name)
    return tree / ".venv/bin/reprobuild"


def renders_the_dockerfile(program: Path, folder: Path) -> None:
    """See that an installed program works, in a folder that has nothing of the tree."""
    env = clean_environment() | {"REPROBUILD_HOME": str(folder / "home")}
    assert run([program, "--version"], folder, env) == f"reprobuild {PROJECT['version']}\n"
    lock = GOLDEN / "pylock.torch-cu121.toml"
    run([program, "render", lock, "--no-artifacts", "-o", "context"], folder, env)
    # The lock is from before a lock named reprobuild's own files; a context names those that are in it.
    wanted = render(replace(read_lock(lock), own_files=own_files()))
    assert (folder / "context/Dockerfile").read_bytes() == wanted.files["Dockerfile"]
    selftest = (folder / "context").rglob("selftest.py")
    assert [p.read_bytes() for p in selftest] == [selftest_program()]


def test_the_sdist_holds_the_tree(built: Path) -> None:
    top = f"reprobuild-{PROJECT['version']}/"
    with tarfile.open(built / f"{top[:-1]}.tar.gz") as archive:
        names = {member.name.removeprefix(top) for member in archive if member.isfile()}
    assert names == {*files("src", "templates", "tests", "benchmarks", "envs", "docs"), *SHIPPED, "PKG-INFO"}


def test_the_wheel_holds_the_package_the_templates_and_the_requests(built: Path) -> None:
    with zipfile.ZipFile(built / f"reprobuild-{PROJECT['version']}-py3-none-any.whl") as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licence = archive.read(f"reprobuild-{PROJECT['version']}.dist-info/licenses/LICENSE")
    package = {name.removeprefix("src/") for name in files("src")}
    assert names == package | {f"reprobuild/{name}" for name in files("templates", "envs")}
    assert {"reprobuild/py.typed", "reprobuild/in_image/reprobuild.pth"} <= names
    assert licence == (TOP / "LICENSE").read_bytes()


def test_the_first_command_of_the_readme_installs_a_program_that_works(program: Path, tmp_path: Path) -> None:
    renders_the_dockerfile(program, tmp_path)


def test_the_wheel_works_where_it_is_installed(built: Path, program: Path, tmp_path: Path) -> None:
    """In the environment of the README's command, whose reprobuild it takes the place of."""
    (wheel,) = built.glob("*.whl")
    pip: list[str | Path] = [
        program.with_name("python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--force-reinstall",
    ]
    run([*pip, wheel], tmp_path, clean_environment())
    renders_the_dockerfile(program, tmp_path)
