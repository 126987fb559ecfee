"""The conda part of a request, locked: channels on loopback, the real solver."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.errors import FetchError
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.lock.reader import parse_lock
from reprobuild.resolve import conda_solver
from support.channel import Channel
from support.index import Index

if TYPE_CHECKING:
    from support.commands import Call
from support.conda_channel import conda, lock_of, versions, write

pytest_plugins = ["support.commands", "support.family", "support.conda_channel"]


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


def test_a_channel_that_is_down(forge: Channel, call: Call) -> None:
    forge.status = 503
    write(conda(["pytorch"]).replace('"forge"', f'"{forge.url}"'))
    said = call("lock", "a")
    assert said.status == 5
    assert "a conda channel cannot be read" in said.err


def test_a_channel_that_breaks_off_is_named(
    forge: Channel, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"error": "channel", "text": "error reading a body from connection: Connection reset by peer"}
    monkeypatch.setattr("reprobuild.resolve.conda_solver._answer", lambda _: said)
    write(conda(["pytorch"]).replace('"forge"', f'"{forge.url}"'))
    assert f"a conda channel cannot be read ({forge.url}" in call("lock", "a").err


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
