"""Imports to the end: an index on loopback, uv, and the lock that comes of it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uv

from reprobuild.imports import common
from reprobuild.lock.reader import parse_lock
from support.index import Index

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family"]


@pytest.fixture(autouse=True)
def _ready(family: Index, apt: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "architecture", lambda: "amd64")


def pins(name: str) -> dict[str, str]:
    return {p.name: p.version for p in parse_lock(Path(f"envs/pylock.{name}.toml").read_text(), "").python}


def test_what_is_pinned_stays_and_the_rest_is_resolved(family: Index, call: Call) -> None:
    Path("requirements.txt").write_text("torch==2.4.0\nnumpy==1.26.4\n")
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1", "--package", "filelock==1.0")
    assert said.status == 0, said.err
    assert pins("work") == {
        "torch": "2.4.0", "numpy": "1.26.4", "filelock": "1.0", "pip": "24.2",
        "nvidia-cuda-runtime-cu12": "12.1.105",
    }  # fmt: skip
    # The request is one like any other.
    assert call("lock", "--check", "work").status == 0


def test_a_range_of_torch(family: Index, call: Call) -> None:
    Path("requirements.txt").write_text("torch<2.4.1\n")
    assert call("lock", "--from", "requirements.txt", "--cuda", "12.1").status == 0
    assert pins("work")["torch"] == "2.4.0"
    Path("other.txt").write_text("torch>=2.6\n")
    said = call("lock", "--from", "other.txt", "--cuda", "12.1")
    assert said.status == 5
    assert "torch >=2.6 is built for CUDA 13.0, 12.4, not for 12.1" in said.err
    assert not Path("envs/other.toml").exists()


def test_hashes_are_held(family: Index, call: Call) -> None:
    wheel = next(f for f in family.files if f.name.startswith("numpy-1.26.4"))
    good = f"numpy==1.26.4 --hash=sha256:{wheel.sha256}\n"
    Path("good.txt").write_text(good)
    Path("bad.txt").write_text(good.replace(wheel.sha256, hashlib.sha256(b"else").hexdigest()))
    assert call("lock", "--from", "good.txt", "--cuda", "12.1").status == 0
    said = call("lock", "--from", "bad.txt", "--cuda", "12.1")
    assert said.status == 5
    assert f"do not match the imported hashes: {wheel.name}" in said.err
    assert not Path("envs/bad.toml").exists()


def test_a_uv_lock_with_its_groups(family: Index, call: Call) -> None:
    Path("pyproject.toml").write_text(
        '[project]\nname = "ours"\nversion = "1"\nrequires-python = "==3.11.*"\n'
        'dependencies = ["filelock==1.0"]\n'
        '[dependency-groups]\ntrain = ["torch==2.4.0"]\n'
    )
    lock = [uv.find_uv_bin(), "lock", "--quiet", "--python", sys.executable, "--no-python-downloads"]
    subprocess.run(lock, check=True)
    said = call("lock", "--from", "uv.lock", "--group", "train")
    assert said.status == 0, said.err
    assert pins("ours")["torch"] == "2.4.0"
    assert pins("ours")["filelock"] == "1.0"
    # Without the group there is no torch in it, so nothing says which CUDA.
    assert "does not say which CUDA" in call("lock", "--from", "uv.lock").err
    Path("uv.lock").write_text("version = 99\n")
    said = call("lock", "--from", "uv.lock")
    assert (said.status, "uv.lock: uv cannot read it" in said.err) == (3, True)


def test_an_exported_lock_comes_back_the_same(family: Index, call: Call) -> None:
    assert call("lock", "--cuda", "12.1").status == 0
    assert call("convert", "torch-cu121", "--to", "requirements", "-o", "all.txt").status == 0
    assert call("lock", "--from", "all.txt").status == 0
    assert pins("all") == pins("torch-cu121")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--from", "a.txt", "--from-image", "b"], "not both"),
        (["--cuda", "12.1", "--group", "x"], "need --from"),
    ],
)
def test_flags_that_do_not_go_together(call: Call, flags: list[str], says: str) -> None:
    said = call("lock", *flags)
    assert (said.status, said.out) == (2, "")
    assert says in said.err


def test_an_image_that_is_not_there(call: Call) -> None:
    assert call("lock", "--from-image", "none").status == 10
