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

from reprobuild.lock.reader import parse_lock
from reprobuild.net.index_settings import ca_bundle
from support.bench import TORCH, Bench
from support.pytorch import PyTorch, serve_pytorch

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow


@pytest.fixture
def pytorch(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PyTorch]:
    bundle = ca_bundle() or Path(ssl.get_default_verify_paths().cafile or "/nonexistent")
    with serve_pytorch(tmp_path) as index:
        name, wheel = bench.torch_wheel()
        version, tag = name.removesuffix(".whl").split("-", 2)[1:]
        index.add("cpu", "torch", version, tag=tag, body=wheel.read_bytes())
        every = tmp_path / "every-ca.pem"
        every.write_bytes(bundle.read_bytes() + index.ca.read_bytes())
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.setenv(name, str(every))
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, index.proxy)
        for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
            monkeypatch.delenv(name, raising=False)
        yield index


def test_cpu_only_end_to_end(
    pytorch: PyTorch, bench: Bench, digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a home without a file of the lock, but with its layers, which do not depend on the index."""
    monkeypatch.setenv("REPROBUILD_HOME", str(tmp_path / "home"))
    for name in ("layers", "oci"):
        shutil.copytree(bench.home / name, tmp_path / "home" / name)
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
    assert torch.wheel.filename == pytorch.folders["cpu"][0].name
    assert "/whl/cpu/" in torch.wheel.url
    asked = [path for method, _, path in pytorch.log if method == "GET" and path.endswith(".whl")]
    assert len(asked) >= 1
