"""Requests with conda: solved on a channel on loopback, to a lock, and out and in again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement

from reprobuild.errors import FetchError
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock
from reprobuild.lock.platforms import parse_locks
from reprobuild.lock.reader import parse_lock
from reprobuild.resolve import conda_solver
from support.channel import Channel, serve_channel, small_forge
from support.index import Index

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]


@pytest.fixture
def forge(
    family: Index, apt: None, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Channel]:
    """A channel by the name of "forge", beside the index with wheels."""
    with serve_channel(tmp_path / "channels/forge") as channel:
        small_forge(channel)
        channel.index()
        monkeypatch.setenv("HOME", str(tmp_path))
        # Its parent stands for the place where all channels are.
        with serve_channel(tmp_path / "channels") as alias:
            monkeypatch.setenv("CONDA_CHANNEL_ALIAS", alias.url)
            yield channel


def write(text: str, name: str = "a") -> None:
    Path("envs").mkdir(exist_ok=True)
    Path(f"envs/{name}.toml").write_text(text)


def conda(specs: list[str], **keys: Any) -> str:
    """A request's text."""
    lines = [f"{key.replace('_', '-')} = {value}" for key, value in {"cuda": '"12.1"', **keys}.items()]
    return "\n".join([*lines, "[conda]", 'channels = ["forge"]', f"packages = {json.dumps(specs)}"])


def lock_of(name: str = "a") -> Lock:
    return parse_lock(Path(f"envs/pylock.{name}.toml").read_text(), name)


def versions(lock: Lock) -> dict[str, str]:
    return {p.name: f"{p.version} {p.build}" for p in lock.conda}


# --- Torch from conda ---


def test_a_cuda_request_gets_a_cuda_build(forge: Channel, call: Call) -> None:
    write(conda(["pytorch"]))
    said = call("lock", "a")
    assert said.status == 0, said.err
    lock = lock_of()
    assert versions(lock) == {
        "cuda-cudart": "12.1.105 0", "cuda-version": "12.1 0", "cudnn": "9.1.0.70 0", "libzlib": "1.3.1 0",
        "filelock": "3.15 pyhd8ed1ab_0", "nccl": "2.20.5 0", "numpy": "2.1.0 py311_0",
        "python": "3.11.9 h1_cpython", "pytorch": "2.4.1 cuda120_py311_0",
    }  # fmt: skip
    # 2.5.0 is there for the CPU only, and is not taken.
    assert lock.stack == {
        "cuda": "12.1.105", "cudnn": "9.1.0.70", "nccl": "2.20.5", "numpy": "2.1.0", "python": "3.11.9",
        "torch": "2.4.1",
    }  # fmt: skip
    assert [p.name for p in lock.python] == ["pip"]
    assert all(re.fullmatch("[0-9a-f]{64}", p.sha256) for p in lock.conda)
    assert "CUDA     12.1.105" in said.out
    assert "1 Python, 9 conda and 2 Debian packages" in said.out
    # The base needs no Python of its own.
    before = Path("envs/pylock.a.toml").read_bytes()
    assert call("lock", "a").out.startswith("envs/pylock.a.toml: unchanged")
    assert Path("envs/pylock.a.toml").read_bytes() == before


def test_another_cuda_of_the_same_build(forge: Channel, call: Call) -> None:
    write(conda(["pytorch-gpu"], cuda='"12.6"'))
    assert call("lock", "a").status == 0
    assert lock_of().stack["cuda"] == "12.6.77"


def test_the_cpu(forge: Channel, call: Call) -> None:
    write(conda(["pytorch <2.5"], cuda='"cpu"'))
    assert call("lock", "a").status == 0
    assert versions(lock_of())["pytorch"] == "2.4.1 cpu_generic_py311_0"
    assert "cuda" not in lock_of().stack


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (conda(["pytorch >=2.5"]), "pytorch"),
        (conda(["pytorch"], torch='"2.5.0"'), "pytorch"),
        (conda(["pytorch 2.4.1 cpu*"]), "pytorch"),
        (conda(["pytorch"], cuda='"12.4"'), "cuda-version"),
        (conda(["pytorch", "needs-old-numpy"]), "numpy <1.20"),
        (conda(["pytorch", "nothing-like-it"]), "No candidates were found for nothing-like-it"),
        (conda(["pytorch"], python='"3.13"'), "python 3.13"),
    ],
)
def test_what_cannot_be_together_is_said_in_the_solvers_words(
    forge: Channel, call: Call, text: str, says: str
) -> None:
    write(text)
    said = call("lock", "a")
    assert (said.status, said.out) == (5, "")
    assert "the conda packages cannot be resolved: " in said.err
    assert says in said.err
    assert not Path("envs/pylock.a.toml").exists()


def test_a_cpu_build_that_the_solver_takes_is_refused_all_the_same(forge: Channel, call: Call) -> None:
    # Such a build can call itself what it wants, so its name alone does not let it in.
    forge.add("pytorch", "9.0", "nocuda_py311_0", depends=["python 3.11.*"])
    forge.index()
    write(conda(["pytorch"]))
    said = call("lock", "a")
    assert said.status == 5
    assert "conda gave packages for CUDA of no version, not 12.1" in said.err


@pytest.mark.parametrize("spec", ["pytorch-gpu", "vision"])
def test_a_cpu_build_that_another_package_brings(forge: Channel, call: Call, spec: str) -> None:
    """Neither what asks for it by another name nor what merely needs it gets a CPU build in."""
    forge.add("pytorch-gpu", "9.0", depends=["pytorch 2.5.0"])
    forge.add("vision", "1.0", depends=["pytorch 2.5.0"])
    forge.index()
    write(conda([f"{spec} {'9.0' if spec == 'pytorch-gpu' else '1.0'}"]))
    said = call("lock", "a")
    assert said.status == 5
    assert "pytorch" in said.err
    assert not Path("envs/pylock.a.toml").exists()


def test_a_cuda_build_that_another_package_brings(forge: Channel, call: Call) -> None:
    forge.add("vision", "1.0", depends=["pytorch 2.4.0"])
    forge.index()
    write(conda(["vision"]))
    said = call("lock", "a")
    assert said.status == 0, said.err
    assert versions(lock_of())["pytorch"] == "2.4.0 cuda120_py311_0"
    assert "torch" not in {p.name for p in lock_of().python}


def test_without_the_virtual_package_there_is_no_cuda_build(
    forge: Channel, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a host without a driver, which the solver must not look at."""
    solve = conda_solver.solve

    def on_a_bare_host(specs: Any, *, virtual: dict[str, str], constraints: Any, **how: Any) -> Any:
        del virtual["__cuda"]
        free = [each for each in constraints if not each.startswith("pytorch ")]
        return solve(specs, virtual=virtual, constraints=free, **how)

    monkeypatch.setattr(conda_solver, "solve", on_a_bare_host)
    write(conda(["pytorch"]))
    said = call("lock", "a")
    assert said.status == 5
    assert "conda gave pytorch 2.5.0 cpu_generic_py311_0, a CPU build" in said.err


# --- Torch as a wheel ---


def test_torch_as_a_wheel_on_condas_python(forge: Channel, call: Call) -> None:
    write(conda(["filelock", "numpy <2"], packages='["pip"]'))
    said = call("lock", "a")
    assert said.status == 0, said.err
    lock = lock_of()
    assert {p.name: p.version for p in lock.python} == {
        "nvidia-cuda-runtime-cu12": "12.1.105", "pip": "24.2", "torch": "2.4.1"
    }  # fmt: skip
    assert lock.distributions["numpy"] == "1.26.4"
    assert lock.stack["python"] == "3.11.9"


def test_wheels_fit_what_conda_brings(forge: Channel, family: Index, call: Call) -> None:
    """The newest ``frames`` wants a NumPy that conda does not have there, so an older one is taken."""
    family.add("frames", "2.0", requires=["numpy>=2"])
    family.add("frames", "1.0", requires=["numpy>=1.20,<=1.26.4", "filelock"])
    write(conda(["filelock", "numpy <2"], packages='["frames"]'))
    said = call("lock", "a")
    assert said.status == 0, said.err
    assert {p.name: p.version for p in lock_of().python}["frames"] == "1.0"
    assert "+conda" not in Path("envs/pylock.a.toml").read_text()
    assert call("lock", "a").out.startswith("envs/pylock.a.toml: unchanged")


@pytest.mark.parametrize("as_of", [None, "2024-09-15"])
def test_a_wheel_that_cannot_be_beside_a_conda_package(
    forge: Channel, family: Index, call: Call, as_of: str | None
) -> None:
    family.add("frames", "2.0", requires=["numpy>=2"])
    keys = {"packages": '["frames"]'} | ({"as_of": as_of} if as_of else {})
    write(conda(["filelock", "numpy <2"], **keys))
    said = call("lock", "a")
    assert (said.status, said.out) == (5, "")
    assert "frames" in said.err
    assert "numpy>=2" in said.err
    assert "numpy==1.26.4+conda" in said.err
    assert "is that of a conda package" in said.err
    assert not Path("envs/pylock.a.toml").exists()


def test_a_conda_package_that_does_not_want_a_wheel_beside_it(
    forge: Channel, family: Index, call: Call
) -> None:
    forge.add("strict", "1.0", depends=["python"], constrains=["pytorch <2.4", "frames >=2", "absent <1"])
    forge.index()
    family.add("frames", "1.0")
    family.add("frames", "2.0")
    write(conda(["strict", "numpy <2"], packages='["frames==1.0"]', torch='"2.0.1"', cuda='"11.7"'))
    said = call("lock", "a")
    assert said.status == 5
    assert "strict 1.0 from conda requires frames >=2, and the wheel is frames 1.0" in said.err
    write(conda(["strict", "numpy <2"], packages='["frames"]', torch='"2.4.1"'))
    assert "requires pytorch <2.4, and the wheel is torch 2.4.1" in call("lock", "a").err
    write(conda(["strict", "numpy <2"], packages='["frames"]', torch='"2.0.1"', cuda='"11.7"'))
    said = call("lock", "a")
    assert said.status == 0, said.err
    assert parse_lock(lock_of().dump(), "again") == lock_of()


def test_the_same_package_in_two_versions(forge: Channel, call: Call) -> None:
    write(conda(["filelock"], packages='["filelock==1.0"]'))
    said = call("lock", "a")
    assert said.status == 5
    assert "filelock==1.0 is required, but conda provides filelock 3.15" in said.err


# --- Pins and dates ---


@pytest.mark.slow
def test_pins_stay_and_move(forge: Channel, call: Call) -> None:
    write(conda(["pytorch"]))
    assert call("lock", "a").status == 0
    forge.add("filelock", "4.0", "pyhd8ed1ab_0", depends=["python >=3.8"], noarch=True)
    forge.add("nccl", "2.21.0", depends=["cuda-version >=12,<13"])
    forge.index()
    write(conda(["pytorch", "young"]))
    assert call("lock", "a").status == 0
    assert versions(lock_of())["filelock"] == "3.15 pyhd8ed1ab_0"
    said = call("lock", "--upgrade", "filelock", "a")
    assert "filelock (conda) 3.15 pyhd8ed1ab_0 → 4.0 pyhd8ed1ab_0" in said.out
    assert versions(lock_of())["nccl"] == "2.20.5 0"
    assert call("lock", "--upgrade", "a").status == 0
    assert versions(lock_of())["nccl"] == "2.21.0 0"


def test_a_pin_that_does_not_fit_takes_no_other_along(forge: Channel, call: Call) -> None:
    write(conda(["pytorch", "young <2"]))
    assert call("lock", "a").status == 0
    forge.add("nccl", "2.21.0", depends=["cuda-version >=12,<13"])
    forge.add("filelock", "4.0", "pyhd8ed1ab_0", depends=["python >=3.8"], noarch=True)
    forge.index()
    write(conda(["pytorch", "young", "filelock >=4"]))
    said = call("lock", "a")
    assert said.status == 0, said.err
    found = versions(lock_of())
    assert found["filelock"] == "4.0 pyhd8ed1ab_0"
    assert (found["nccl"], found["young"]) == ("2.20.5 0", "1.0 0")


def test_another_release_is_another_c_library(forge: Channel, call: Call) -> None:
    """What needs a newer one does not stay when the request goes back to an older release."""
    forge.add("modern", "2.0", depends=["__glibc >=2.36"])
    forge.add("modern", "1.0")
    forge.index()
    write(conda(["pytorch", "modern"]))
    assert call("lock", "a").status == 0
    assert versions(lock_of())["modern"] == "2.0 0"
    text = Path("envs/pylock.a.toml").read_text()
    write(conda(["pytorch", "modern"]) + '\n[base]\ndebian = "bullseye"')
    old = [replace(p, version="2.31-13") if p.name == "libc6" else p for p in lock_of().debian]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reprobuild.resolve.debian_system.resolve_debian", lambda *_, **__: tuple(old))
        said = call("lock", "a")
    assert said.status == 0, said.err
    assert Path("envs/pylock.a.toml").read_text() != text
    assert versions(lock_of())["modern"] == "1.0 0"


def test_nothing_younger_and_nothing_without_a_date(forge: Channel, call: Call) -> None:
    write(conda(["pytorch", "young"], as_of="2024-09-15"))
    assert call("lock", "a").status == 0
    assert versions(lock_of())["young"] == "1.0 0"
    write(conda(["pytorch", "undated"], as_of="2024-09-15"))
    said = call("lock", "a")
    assert said.status == 5
    assert "undated" in said.err
    assert "nothing without a date" in said.err


# --- Bad channels ---


def test_a_channel_that_is_down(forge: Channel, call: Call) -> None:
    forge.status = 503
    write(conda(["pytorch"]).replace('"forge"', f'"{forge.url}"'))
    said = call("lock", "a")
    assert said.status == 5
    assert "a conda channel cannot be read" in said.err


def test_a_channel_that_is_not_there(forge: Channel, call: Call) -> None:
    write(conda(["pytorch"]).replace('"forge"', '"frge"'))
    said = call("lock", "a")
    assert said.status == 5
    assert "frge" in said.err


@pytest.mark.parametrize("key", ["sha256", "size"])
def test_an_entry_without_a_hash_is_refused(forge: Channel, call: Call, key: str) -> None:
    forge.index({"filelock-3.15-pyhd8ed1ab_0.conda": {key: None}})
    write(conda(["pytorch"]))
    said = call("lock", "a")
    assert said.status == 5
    assert f"gives no {key} of filelock-3.15-pyhd8ed1ab_0.conda" in said.err


def test_a_channel_that_is_a_folder(
    forge: Channel, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are held against their hashes as any others are, which py-rattler itself does not do."""
    monkeypatch.setenv("REPROBUILD_LOCAL_FILES", str(forge.folder))
    write(conda(["pytorch"]).replace('"forge"', f'"{forge.folder.as_uri()}"'))
    said = call("lock", "a")
    assert said.status == 0, said.err
    lock = lock_of()
    assert {p.url.partition("/")[0] for p in lock.conda} == {"file:"}
    only = replace(lock, python=(), debian=())
    monkeypatch.delenv("REPROBUILD_LOCAL_FILES")
    with pytest.raises(FetchError, match="none of your settings names its folder"):
        fetch(only, Store(Home(tmp_path / "home")), Console(quiet=True))
    monkeypatch.setenv("REPROBUILD_LOCAL_FILES", str(forge.folder))
    fetch(only, Store(Home(tmp_path / "home")), Console(quiet=True))
    # The channel has other versions too, and a byte may have any value.
    file = Path(next(p.url for p in lock.conda if p.name == "filelock").removeprefix("file://"))
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(FetchError, match="filelock"):
        fetch(only, Store(Home(tmp_path / "other")), Console(quiet=True))


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
