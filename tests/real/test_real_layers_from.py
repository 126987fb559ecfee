"""A machine that has nothing takes the layers of the real CPU image from a real registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.bench import NAME, Bench
from support.registry import serve_registry

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines


def test_a_fresh_machine_takes_the_layers(bench: Bench, digest: str, tmp_path: Path) -> None:
    record = bench.folder / "envs/layers.json"
    with serve_registry(tmp_path / "registry") as host:
        bench.run("push", NAME, f"{host}/team/torch:1", "--record-layers")
        first = record.read_bytes()
        bench.run("push", NAME, f"{host}/team/torch:2", "--record-layers")
        assert record.read_bytes() == first
        # No index and no mirror answers: nothing but the registry is needed.
        nowhere = {"REPROBUILD_HOME": str(tmp_path / "home"), "UV_INDEX": "", "UV_DEFAULT_INDEX": ""}
        for name, value in (("HTTPS_PROXY", "http://127.0.0.1:1"), ("HTTP_PROXY", "http://127.0.0.1:1")):
            nowhere |= {name: value, name.lower(): value}
        nowhere |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        out, err = bench.run(
            "image", bench.lock, "--layers-from", f"{host}/team/torch", "--gpu", "off", "--json", env=nowhere
        )
    made = json.loads(out)
    assert made["digest"] == digest
    assert made["report"]["verdict"] == "passed"
    assert "layers from" in err
    assert "building" not in err
    assert not (tmp_path / "home/store/sha256").exists()
    bench.run("check", NAME, env=nowhere)
