"""The command ``doctor``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.errors import RegistryError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.registry.client import Target
from reprobuild.oci.registry.push import push
from reprobuild.pipeline.preflight import doctor
from reprobuild.pipeline.preflight.doctor import examine
from support.building import lock_for, no_context, without_debian
from support.locks import LOCK
from support.registry import gate_before, serve_registry
from support.wheels import put, simple_wheel

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.nvidia_smi"]


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
    assert "returned bytes for sha256:" in tampered.err
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
