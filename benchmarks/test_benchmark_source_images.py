"""Five requests whose packages have to be built, each from lock to a tested image in which they run.

A Cython extension in C, one with an odd build backend by its address, one in C++ against PyTorch, those of a
uv.lock, and one by git. The index is that of the machine; it needs the releases named here.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import uv

from conftest import needs
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.net.session import session
from reprobuild.pipeline.workspace import read_lock
from reprobuild.resolve.index_page import files
from support.artifacts import fetch_once
from support.bench import TORCH, Bench
from support.git_server import git_server, repository

COMPILER = ("--build-apt", "g++", "--build-apt", "python3.11-dev")
SPLINE = """
import torch, torch_spline_conv
found = torch_spline_conv.spline_basis(
    torch.rand(4, 2), torch.tensor([5, 5]), torch.tensor([1, 1], dtype=torch.uint8), 1
)
print(tuple(found[0].shape))
"""
PESQ = "from pesq import cypesq, pesq; print(callable(pesq))"
GIT = {
    "pyproject.toml": '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    '[project]\nname = "ours"\nversion = "1.0"\n',
    "ours/__init__.py": "VALUE = 7\n",
}


@contextmanager
def by_name(name: str, *words: str) -> Iterator[Sequence[str]]:
    yield ("--package", name, *words)


@contextmanager
def by_address(name: str, filename: str) -> Iterator[Sequence[str]]:
    """The source archive of a release, where the user's index has it."""
    with session() as http:
        file = next(each for each in files(name, http) if each.package.filename == filename)
    yield ("--package", f"{name} @ {file.package.url.partition('#')[0]}")


@contextmanager
def by_uv_lock(folder: Path, *names: str) -> Iterator[Sequence[str]]:
    """A project's uv.lock, which uv writes here; it runs what it has to, as it does for any user."""
    folder.mkdir()
    listed = ", ".join(f'"{name}"' for name in names)
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "p"\nversion = "1"\nrequires-python = "==3.11.*"\ndependencies = [{listed}]\n'
    )
    subprocess.run([uv.find_uv_bin(), "lock", "--quiet"], cwd=folder, check=True)
    yield ("--from", str(folder / "uv.lock"))


@contextmanager
def by_git(folder: Path) -> Iterator[Sequence[str]]:
    with git_server(folder) as server:
        repository(folder / "ours", GIT)
        yield ("--package", f"ours @ git+{server.url}/ours/.git@main")


def test_what_has_to_be_built_is_in_a_tested_image(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for program in ("mmdebstrap", "crun", "git"):
        needs(program)
    bench = Bench(tmp_path, "")
    bench.lock_torch()
    fetch_once(read_lock(tmp_path / bench.lock), Store(Home(bench.home)), tmp_path_factory)
    spline = ("--build-torch", "torch-spline-conv", *COMPILER)
    cases: dict[str, tuple[Callable[[], AbstractContextManager[Sequence[str]]], str, str]] = {
        "pesq": (lambda: by_name("pesq", *COMPILER), PESQ, "True"),
        "attrs": (
            lambda: by_address("attrs", "attrs-24.2.0.tar.gz"),
            "import attrs; print(attrs.__version__)",
            "24.2.0",
        ),
        "uvlock": (
            lambda: by_uv_lock(tmp_path / "project", "langdetect==1.0.9", "docopt==0.6.2"),
            "import langdetect, docopt; print(docopt.__version__)",
            "0.6.2",
        ),
        "git": (lambda: by_git(tmp_path / "served"), "import ours; print(ours.VALUE)", "7"),
        "spline": (lambda: by_name("torch-spline-conv", *spline), SPLINE, "(4, 4)"),
    }
    for name, (source, code, said) in cases.items():
        start = time.monotonic()
        with source() as words:
            bench.run("lock", "--cuda", "cpu", "--torch", TORCH, "--name", name, *words)
        locked = time.monotonic()
        path = f"envs/pylock.{name}.toml"
        built = [each for each in read_lock(tmp_path / path).python if each.source is not None]
        assert built, path
        image = json.loads(bench.run("image", path, "--json")[0])
        done = time.monotonic()
        assert bench.run("run", image["name"], "--", "python3", "-c", code)[0].strip() == said
        bench.run("remove", image["name"])
        pins = ", ".join(each.pin for each in built)
        print(f"{name}: {pins}: lock {locked - start:.0f} s, image {done - locked:.0f} s", flush=True)
