"""Conda to the end: a channel with a Python that starts and the real torch, to an image that passes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch_python

from conftest import needs
from support.channel import Channel, serve_channel
from support.conda_python import add_installed, add_python
from support.engines import podman
from support.schemas import hold_to_schema

pytestmark = [pytest.mark.slow, pytest.mark.torch]

BUILT = ("torch", "numpy", "markupsafe")
PURE = ("filelock", "fsspec", "jinja2", "mpmath", "networkx", "sympy", "typing_extensions")
ON_TOP = "opt-einsum==3.3.0"
"""A wheel, which wants the NumPy that conda brings."""
LIBRARIES = ["libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libssl3", "libuuid1", "zlib1g"]
"""Of the Debian that this machine's Python was built for."""


@dataclass
class Machine:
    """A folder to work in, a home of its own, and a channel that holds torch."""

    folder: Path
    channel: Channel
    versions: dict[str, str]

    def run(self, *argv: str, status: int = 0, env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            [Path(sys.executable).with_name("reprobuild"), *argv],
            cwd=self.folder,
            env={
                **os.environ,
                "REPROBUILD_HOME": str(self.folder / "home"),
                **(env or {}),
            },
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == status, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        hold_to_schema(argv, done.stdout)
        return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    for program in ("mmdebstrap", "crun"):
        needs(program)
    site = torch_python.need_torch()
    interpreter = torch_python._ASKED or shutil.which("python3") or sys.executable
    folder = tmp_path_factory.mktemp("conda")
    try:
        with serve_channel(folder / "channel") as channel:
            minor = add_python(channel, interpreter)
            versions = add_installed(channel, site, BUILT, minor)
            versions |= add_installed(channel, site, PURE, minor, noarch=True)
            channel.index()
            yield Machine(folder, channel, versions)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def made(machine: Machine) -> dict[str, Any]:
    """The image of an environment.yml, as the embedded engine builds it."""
    names = ", ".join(sorted(machine.versions))
    (machine.folder / "environment.yml").write_text(
        f"name: forge\nchannels: [{machine.channel.url}]\ndependencies: [{names}]\n"
    )
    apt = [word for name in LIBRARIES for word in ("--apt", name)]
    machine.run("lock", "--from", "environment.yml", "--cuda", "cpu", "--package", ON_TOP, *apt)
    found: dict[str, Any] = json.loads(machine.run("image", "forge", "--json", "--gpu", "off"))
    return found


def test_an_environment_becomes_an_image_that_passes(machine: Machine, made: dict[str, Any]) -> None:
    assert made["report"]["verdict"] == "passed"
    assert made["labels"]["dev.reprobuild.torch"] == machine.versions["pytorch"]
    name = made["name"]
    code = """
import json, os, sys, sympy, torch
marked = open(sys.prefix + "/lib/python%d.%d/prefix.txt" % sys.version_info[:2]).read()
print(json.dumps([sys.prefix, os.environ["CONDA_PREFIX"], marked, torch.__file__,
  os.path.exists(sympy.__cached__), torch.are_deterministic_algorithms_enabled()]))
"""
    said = json.loads(machine.run("run", name, "--", "python3", "-c", code))
    assert said[0] == said[1] == said[2] == "/opt/venv"
    assert said[3].startswith("/opt/venv/lib/python3.")
    assert said[4], "noarch modules come with bytecode"
    assert said[5], "the hook is at work"
    meta = machine.run("run", name, "--", "sh", "-c", "cat /opt/venv/conda-meta/*.json")
    assert str(machine.folder) not in meta
    assert machine.channel.url in meta
    listed = machine.run("run", name, "--", "python3", "-m", "pip", "list", "--format", "freeze")
    assert f"numpy=={machine.versions['numpy']}" in listed
    assert ON_TOP.replace("-", "_") in listed.replace("-", "_")
    code = "import opt_einsum, os; print(os.path.exists(opt_einsum.__cached__))"
    assert machine.run("run", name, "--", "python3", "-c", code) == "True\n"


def test_the_dockerfile_gives_the_same_files(machine: Machine, made: dict[str, Any], tmp_path: Path) -> None:
    """Bytecode too, though conda's comes in a tar file there and the wheels' is made by the Dockerfile."""
    with podman(tmp_path / "site") as site:
        argv = ("image", "forge", "--engine", "podman", "--independent", "--json", "--gpu", "off")
        there = json.loads(machine.run(*argv, env=site.env))
        assert there["report"]["verdict"] == "passed"
        compared = machine.run("compare", made["name"], f"podman:{there['name']}", "--json", env=site.env)
    found = json.loads(compared)
    assert found["differences"] == []
    assert len({image["tree"] for image in found["images"]}) == 1


def test_it_is_the_same_again(machine: Machine, made: dict[str, Any]) -> None:
    home = machine.folder / "home"
    for part in ("layers", "oci", "roots", "tmp"):
        shutil.rmtree(home / part)
    # All that is locked is in the store by now.
    machine.channel.status = 503
    again = json.loads(machine.run("image", "forge", "--json", "--gpu", "off"))
    machine.channel.status = 200
    assert again["digest"] == made["digest"]


def test_bytes_that_are_not_those_of_the_lock(machine: Machine, made: dict[str, Any]) -> None:
    """A package whose bytes are not those of the lock is refused, whichever way it comes."""
    shutil.rmtree(machine.folder / "home/store")
    package = next(machine.channel.folder.glob("noarch/mpmath*"))
    whole = package.read_bytes()
    package.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (machine.folder / "home/layers").rename(machine.folder / "home/layers-away")
    machine.run("image", "forge", "--gpu", "off", status=6)
    package.write_bytes(whole)
