"""What a machine is found to have, with a stand-in for nvidia-smi that prints what the real one does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild import pipeline
from reprobuild.engines.embedded import OciEngine
from reprobuild.errors import FetchError, HostError, RegistryError
from reprobuild.host import process
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.pipeline import _check_gpus
from reprobuild.preflight import doctor
from reprobuild.preflight.doctor import Driver, examine
from reprobuild.registry.client import Target
from reprobuild.registry.push import push
from reprobuild.selftest.run import Gpu
from support.building import lock_for, no_context, without_debian
from support.hosts import quiet_host
from support.locks import LOCK
from support.registry import gate_before, serve_registry
from support.wheels import put, simple_wheel

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.nvidia_smi"]


def test_the_driver_says_what_it_is(smi: Path) -> None:
    a100 = ("NVIDIA A100-SXM4-40GB", "8.0")
    assert doctor.driver() == Driver("550.54.14", "12.4", (a100, a100))


@pytest.mark.parametrize(
    ("text", "says"), [("#!/bin/sh\nexit 9\n", "exited with 9"), ("#!/bin/sh\n", "printed no driver")]
)
def test_a_driver_that_is_broken(smi: Path, text: str, says: str) -> None:
    smi.write_text(text)
    found = doctor.driver()
    assert isinstance(found, str)
    assert says in found


@pytest.mark.parametrize("gpu", ["auto", "require"])
def test_what_will_not_run_is_said_before_the_download(
    smi: Path, tmp_path: Path, gpu: Gpu, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = replace(LOCK, gpu_targets=("sm_50",))
    if gpu == "require":
        with pytest.raises(HostError, match=r"--gpu require: NVIDIA A100.* only has code for sm_50"):
            _check_gpus(lock, gpu, Host(Home(tmp_path), Console()))
    else:
        _check_gpus(lock, gpu, Host(Home(tmp_path), Console()))
        assert "sm_50; the test on the GPU will fail" in capsys.readouterr().err
    _check_gpus(lock, "off", Host(Home(tmp_path), Console()))
    assert capsys.readouterr().err == ""
    _check_gpus(LOCK, gpu, Host(Home(tmp_path), Console()))


def test_an_image_is_not_fetched_before_that_is_said(
    smi: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise FetchError("here the download begins")

    monkeypatch.setattr(pipeline, "check_host", lambda _: None)
    monkeypatch.setattr(pipeline, "fetching", stop)
    Path("pylock.a.toml").write_text(replace(LOCK, gpu_targets=("sm_50",)).dump())
    said = call("image", "pylock.a.toml")
    assert said.status == FetchError.exit_code
    assert said.err.index("sm_50; the test on the GPU will fail") < said.err.index("the download begins")


# --- An image, before it is pulled ---


def test_an_image_of_a_registry(
    smi: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_debian(monkeypatch)
    home = Home(tmp_path / "home")
    monkeypatch.setenv("REPROBUILD_HOME", str(home.root))
    engine = OciEngine(Host(home, Console(quiet=True)))
    lock = lock_for(home, [put(home, "torch", simple_wheel("torch"))])
    lock = replace(lock, gpu_targets=("sm_50",), request=replace(lock.request, cuda="12.1"))
    digest = engine.build(lock, no_context)
    engine.images.name(digest, "team/x:1")
    with serve_registry(tmp_path / "registry") as host, gate_before(host) as gate:
        there = Target.parse(f"{host}/team/x:1")
        push(engine.images, engine.images.find(digest), there, Console(), force=False)
        said = call("doctor", f"{gate.host}/team/x:1")
        asked = [line for line in gate.log if line.startswith("GET ") and "/blobs/" in line]
        assert len(asked) == 1, "the configuration, and no layer"
        missing = call("doctor", f"{gate.host}/team/x:2")
        kept = (tmp_path / "registry").rglob("blobs/sha256/*/*/data")
        (config,) = (
            file for file in kept if file.read_bytes()[:1] == b"{" and b"rootfs" in file.read_bytes()
        )
        config.write_bytes(config.read_bytes() + b" ")
        tampered = call("doctor", f"{gate.host}/team/x:1")
    assert tampered.status == RegistryError.exit_code
    assert "gives bytes for sha256:" in tampered.err
    assert said.status == 7
    assert "GPU     BAD: NVIDIA A100-SXM4-40GB has compute capability 8.0" in said.out
    assert "to fetch" in said.out
    assert (missing.status, "/team/x has no 2" in missing.err) == (RegistryError.exit_code, True)
    assert call("doctor", "team/x:1").status == 7
    assert call("doctor", "oci:team/x:1").status == 7


def test_a_lock_needs_disk_and_a_driver(smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = replace(LOCK, request=replace(LOCK.request, cuda="13.0"))
    monkeypatch.setattr(doctor, "free_bytes", lambda _: 10**9)
    found = {each.name: each for each in examine(lock, Host(Home(tmp_path), Console(quiet=True)))}
    assert found["disk"].good is False
    assert "needs about" in found["disk"].text
    assert found["driver"].good is False
    assert found["driver"].text.startswith("driver 550.54.14 supports CUDA up to 12.4")
    monkeypatch.setattr(doctor, "free_bytes", lambda _: 10**13)
    found = {each.name: each for each in examine(LOCK, Host(Home(tmp_path), Console(quiet=True)))}
    assert found["disk"].good
    assert found["driver"].good
    assert "compute capability 8.0" in found["GPU"].text


def test_what_is_missing_is_the_exit_status(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere.pem")
    said = call("doctor")
    assert said.status == 7
    assert "certificates  BAD: REQUESTS_CA_BUNDLE names /nowhere.pem" in said.out
    assert "this machine lacks something: " in said.err
    assert call("doctor", "envs/none.toml").status == 3


@pytest.mark.parametrize(
    ("missing", "package"), [("pivot_root", "util-linux"), ("setpriv", "util-linux"), ("umount", "mount")]
)
def test_a_program_of_the_sandbox_that_is_missing(
    missing: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = process.which
    monkeypatch.setattr(process, "which", lambda program: None if program == missing else which(program))
    (found,) = [each for each in examine(None, quiet_host()) if each.name == "sandbox"]
    assert found.good is False
    assert found.text.startswith(f"{missing} is not installed; it is needed to keep programs")
    assert found.hint == f"apt-get install -y {package}"
