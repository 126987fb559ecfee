"""A CPU build from PyTorch's own index: the real wheel, the address that uv knows, to a tested image."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.index_settings import ca_bundle
from reprobuild.lockparse import parse_lock
from support.pytorch import PyTorch, serve_pytorch

pytestmark = pytest.mark.real

TORCH = "2.13.0"
TAG = "cp311-cp311-manylinux_2_28_x86_64"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The real CPU wheel, which this machine's pip must be able to find."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    command += ["--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:"]
    done = subprocess.run([*command, f"torch=={TORCH}+cpu"], capture_output=True, check=False)
    files = list(folder.glob("*.whl"))
    if not files:
        pytest.skip(f"pip finds no torch {TORCH}+cpu here: {done.stderr.decode()[-200:]}")
    body = files[0].read_bytes()
    shutil.rmtree(folder)
    return body


@pytest.fixture
def pytorch(wheel: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PyTorch]:
    bundle = ca_bundle() or Path(ssl.get_default_verify_paths().cafile or "/nonexistent")
    with serve_pytorch(tmp_path) as index:
        index.add("cpu", "torch", f"{TORCH}+cpu", tag=TAG, body=wheel)
        every = tmp_path / "every-ca.pem"
        every.write_bytes(bundle.read_bytes() + index.ca.read_bytes())
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.setenv(name, str(every))
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, index.proxy)
        for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
            monkeypatch.delenv(name, raising=False)
        yield index


def test_cpu_only_end_to_end(pytorch: PyTorch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("mmdebstrap", "crun"):
        needs(program)
    monkeypatch.setenv("REPROBUILD_HOME", str(tmp_path / "home"))
    argv = ["image", "--cuda", "cpu", "--index", "pytorch", "--torch", TORCH, "--gpu", "off", "--json"]
    try:
        done = subprocess.run(
            [Path(sys.executable).with_name("reprobuild"), *argv],
            cwd=tmp_path,
            env=dict(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["report"]["verdict"] == "passed"
    lock = parse_lock((tmp_path / "envs/pylock.torch-cpu.toml").read_text(), "")
    torch = next(p for p in lock.python if p.name == "torch")
    assert torch.version == f"{TORCH}+cpu"
    assert "/whl/cpu/" in torch.wheel.url
    asked = [path for method, _, path in pytorch.log if method == "GET" and path.endswith(".whl")]
    assert len(asked) >= 1
