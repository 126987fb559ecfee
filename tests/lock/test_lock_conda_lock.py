"""Requests with conda: solved on a channel on loopback, to a lock, and out and in again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from reprobuild.lock.platforms import parse_locks
from support.channel import Channel, small_forge

if TYPE_CHECKING:
    from support.commands import Call
from support.conda_channel import conda, lock_of, versions, write

pytest_plugins = ["support.commands", "support.family", "support.conda_channel"]


# --- Torch from conda ---


# --- Torch as a wheel ---


# --- Pins and dates ---


# --- Bad channels ---


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('channels = ["a"]', "envs/a.toml: conda.packages: missing"),
        ('packages = ["a"]', "envs/a.toml: conda.channels: missing"),
        ('channels = ["https://u:p@h.example/c"]\npackages = ["a"]', "its address without a password"),
        ('channels = ["a"]\npackages = ["a; rm"]', "expected a match spec"),
        ('channels = ["a"]\npackages = [1]', "envs/a.toml: conda.packages[0]: expected text in quotes"),
        ("chanels = []", "envs/a.toml: conda.chanels: unknown key"),
        ('environment = "e.yml"\nchannels = ["a"]', "without channels"),
        ('environment = "e.yml"', "e.yml: no such file"),
        ('environment = "/etc/passwd"', "/etc/passwd is not a .yml or .yaml file below"),
        ('environment = "../../e.yml"', "e.yml is not a .yml or .yaml file below"),
        ('environment = "../link.yml"', "link.yml is not a .yml or .yaml file below"),
    ],
)
def test_a_bad_table(forge: Channel, call: Call, table: str, says: str) -> None:
    write(f'cuda = "12.1"\n[conda]\n{table}')
    Path("link.yml").symlink_to("/etc/passwd")
    said = call("lock", "a")
    assert (said.status, said.out) == (3, "")
    assert says in said.err
    assert "root:" not in said.err


# --- environment.yml ---

ENVIRONMENT = """\
name: Our Env
channels: [forge, nodefaults]
dependencies:
  - python=3.11
  - pytorch 2.4.*
  - forge::young=1.0  # [linux64]
  - nothing-for-windows  # [win]
  - pip
  - pip:
    - filelock==3.15 ; sys_platform == "linux"
"""


def test_an_environment_is_part_of_the_request(forge: Channel, call: Call) -> None:
    write('cuda = "12.1"\n[conda]\nenvironment = "../environment.yml"')
    Path("environment.yml").write_text(ENVIRONMENT)
    said = call("lock", "a")
    assert said.status == 0, said.err
    lock = lock_of()
    assert versions(lock)["young"] == "1.0 0"
    assert lock.request.conda is not None
    assert lock.request.conda.channels == ("forge",)
    assert lock.request.packages == ("filelock==3.15",)
    assert call("lock", "--check", "a").status == 0
    Path("environment.yml").write_text(ENVIRONMENT.replace("=1.0", "=2.0"))
    said = call("lock", "--check", "a")
    assert said.status == 4
    assert "conda.packages" in said.err


# --- Two platforms ---

TWO = '["linux/amd64", "linux/arm64"]'


@pytest.mark.slow
def test_two_platforms(forge: Channel, call: Call) -> None:
    write(conda(["pytorch"], platforms=TWO))
    said = call("lock", "a")
    assert said.status == 5
    assert "linux/arm64: the conda packages cannot be resolved" in said.err
    forge.subdir = "linux-aarch64"
    small_forge(forge)
    forge.index()
    said = call("lock", "a")
    assert said.status == 0, said.err
    amd, arm = parse_locks(Path("envs/pylock.a.toml").read_text(), "a")
    assert versions(amd) == versions(arm)
    assert {p.subdir for p in amd.conda} == {"linux-64", "noarch"}
    assert {p.subdir for p in arm.conda} == {"linux-aarch64", "noarch"}
    before = Path("envs/pylock.a.toml").read_bytes()
    assert call("lock", "a").out.count("unchanged") == 2
    assert Path("envs/pylock.a.toml").read_bytes() == before


def test_an_environment_of_two_platforms_has_no_selectors(forge: Channel, call: Call) -> None:
    forge.subdir = "linux-aarch64"
    small_forge(forge)
    forge.index()
    write(f'cuda = "12.1"\nplatforms = {TWO}\n[conda]\nenvironment = "../environment.yml"')
    Path("environment.yml").write_text(ENVIRONMENT)
    said = call("lock", "a")
    assert said.status == 3
    assert "conda.environment: asks for different packages on each of linux/amd64, linux/arm64" in said.err
    Path("environment.yml").write_text(ENVIRONMENT.replace("# [linux64]", "# [linux]"))
    said = call("lock", "a")
    assert said.status == 0, said.err
    assert call("lock", "--check", "a").status == 0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: Our Env", "frobnicate: 1", "environment.yml: frobnicate: unknown key"),
        ("channels: [forge, nodefaults]", "channels: forge", "channels: expected a list of channels"),
        ("  - pip:", "  - npm:", "is neither a package nor a list for pip"),
        ("filelock==3.15 ; sys", "-e . ; sys", "is not a package of an index"),
        ("filelock==3.15 ; sys", "git+https://h.example/x ; sys", "is not a package of an index"),
        ("  - pytorch 2.4.*", "  - [a", "not valid YAML"),
        ("  - pytorch 2.4.*", "  - '!!!'", "conda-lock cannot read it"),
    ],
)
def test_a_bad_environment(forge: Channel, call: Call, old: str, new: str, says: str) -> None:
    assert old in ENVIRONMENT
    Path("environment.yml").write_text(ENVIRONMENT.replace(old, new))
    write('cuda = "12.1"\n[conda]\nenvironment = "../environment.yml"')
    said = call("lock", "a")
    assert (said.status, said.out) == (3, "")
    assert says in said.err


# --- Out and in again ---


@pytest.mark.slow
def test_stock_conda_lock_reads_what_is_written(forge: Channel, call: Call) -> None:
    write(conda(["pytorch", "young"], packages='["filelock"]'))
    assert call("lock", "a", "--conda-lock", "conda-lock.yml").status == 0
    lock = lock_of()
    render = [sys.executable, "-m", "conda_lock", "render", "--kind", "explicit", "-p", "linux-64"]
    subprocess.run([*render, "conda-lock.yml"], check=True, capture_output=True)
    explicit = Path("conda-linux-64.lock").read_text()
    for package in lock.conda:
        assert f"{package.url}#{package.md5}" in explicit
    again = call("convert", "a", "--to", "conda-lock").out
    assert again == Path("conda-lock.yml").read_text()
    assert all(p.sha256 in again for p in lock.conda)


# Of conda's own conda/misc.py: what a line of an explicit list may be.
_EXPLICIT_LINE = re.compile(
    r"(?:(?P<url_p>.+)(?:[/\\]))?(?P<fn>[^/\\#]+(?:\.tar\.bz2|\.conda))"
    r"(?:#(?:(?P<md5>[0-9a-f]{32})|(?:(?:sha256:)?(?P<sha256>[0-9a-f]{64}))))?"
)


def test_conda_reads_the_explicit_list(forge: Channel, call: Call) -> None:
    write(conda(["pytorch"]))
    assert call("lock", "a").status == 0
    lines = call("convert", "a", "--to", "explicit").out.splitlines()
    lock = lock_of()
    assert lines[1:3] == ["# platform: linux-64", "@EXPLICIT"]
    found = [_EXPLICIT_LINE.fullmatch(line) for line in lines[3:] if not line.startswith("#")]
    named = {(f"{line['url_p']}/{line['fn']}", line["sha256"]) for line in found if line}
    assert len(named) == len(found)
    assert named == {(p.url, p.sha256) for p in lock.conda}
    # As conda-lock's `install` picks the wheels out, to hand them to pip.
    (pip,) = [line.split("# pip ")[1] for line in lines if line.startswith("# pip ")]
    wheel = lock.python[0].wheel
    assert Requirement(pip).url == f"{wheel.url}#sha256={wheel.sha256}"
    assert sum(":pool/" in line for line in lines) == len(lock.debian)


def test_a_conda_lock_is_taken_over_with_its_pins(forge: Channel, call: Call) -> None:
    write(conda(["pytorch"]))
    assert call("lock", "a", "--conda-lock", "conda-lock.yml").status == 0
    forge.add("nccl", "2.21.0", depends=["cuda-version >=12,<13"])
    forge.index()
    said = call("lock", "--from", "conda-lock.yml", "--name", "b")
    assert said.status == 0, said.err
    assert versions(lock_of("b")) == versions(lock_of("a"))
    assert lock_of("b").request.cuda == "12.1"
    text = Path("conda-lock.yml").read_text()
    sha256 = next(p.sha256 for p in lock_of("a").conda if p.name == "nccl")
    Path("other-lock.yml").write_text(text.replace(sha256, "ab" * 32))
    said = call("lock", "--from", "other-lock.yml", "--name", "c")
    assert said.status == 5
    assert "do not match the imported hashes: nccl" in said.err
    Path("bare-lock.yml").write_text(text.replace(f"    sha256: {sha256}\n", ""))
    said = call("lock", "--from", "bare-lock.yml", "--name", "d")
    assert (said.status, "bare-lock.yml: no SHA-256 for nccl" in said.err) == (3, True)


def test_an_environment_is_taken_over(forge: Channel, call: Call) -> None:
    Path("environment.yml").write_text(ENVIRONMENT)
    said = call("lock", "--from", "environment.yml", "--cuda", "12.1")
    assert said.status == 0, said.err
    assert versions(lock_of("our-env"))["pytorch"] == "2.4.1 cuda120_py311_0"


def test_a_check_writes_no_conda_lock(forge: Channel, call: Call) -> None:
    write(conda(["pytorch"]))
    assert call("lock", "a").status == 0
    said = call("lock", "a", "--check", "--conda-lock", "x.yml")
    assert (said.status, "--conda-lock" in said.err) == (2, True)
    assert not Path("x.yml").exists()


def test_no_conda_lock_of_a_lock_without_conda(forge: Channel, call: Call) -> None:
    said = call("lock", "--cuda", "12.1", "--conda-lock", "x.yml")
    assert said.status == 3
    assert "it has no conda packages" in said.err
