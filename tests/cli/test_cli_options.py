"""Flags that make a request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.cli.options import _request, env_from_flags
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.lock.reader import parse_lock
from support.index import Index
from support.standalone_python import list_builds

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands", "support.family"]


LOCK = Path("envs/pylock.torch-cu121.toml")


@pytest.fixture
def ready(family: Index, apt: None, folder: Path) -> Index:
    """An index with torch, an apt, and an empty folder."""
    return family


def versions(path: Path = LOCK) -> dict[str, str]:
    return {p.name: p.version for p in parse_lock(path.read_text(), "test").python}


def test_flags_of_builds_are_a_table_of_the_request() -> None:
    found = _request({"cuda": "12.1", "build_apt": ("pkg-config", "g++"), "build_torch": ("Flash_Attn",)})
    assert found.build.to_dict() == {"apt": ["g++", "pkg-config"], "flash-attn": {"torch": True}}


def test_every_key_of_builds_has_a_flag() -> None:
    found = _request(
        {
            "cuda": "13.0",
            "build_torch": ("Flash_Attn",),
            "build_cuda": ("flash-attn", "other"),
            "build_requires": ("flash-attn:packaging", "flash-attn:wheel<1"),
            "build_env": ("flash-attn:TORCH_CUDA_ARCH_LIST=8.0;9.0", "other:TORCH_CUDA_ARCH_LIST=A=B:C"),
        }
    )
    assert found.build.to_dict() == {
        "flash-attn": {
            "env": {"TORCH_CUDA_ARCH_LIST": "8.0;9.0"},
            "requires": ["packaging", "wheel<1"],
            "torch": True,
            "cuda": True,
        },
        "other": {"env": {"TORCH_CUDA_ARCH_LIST": "A=B:C"}, "cuda": True},
    }


def test_every_flag_lands_in_the_request(ready: Index, call: Call) -> None:
    flags = "--cuda 12.1 --python 3.11 --torch 2.4.0 --package filelock==1.0 --apt git --debian bookworm"
    flags += " --profile portable --seed 7 --threads 2 --as-of 2024-09-15 --name all"
    assert call("lock", *flags.split()).status == 0
    assert Path("envs/all.toml").read_text() == (
        'name = "all"\npython = "3.11"\ncuda = "12.1"\ntorch = "2.4.0"\n'
        'packages = [\n    "filelock==1.0",\n    "numpy<2",\n]\n'
        'apt = [\n    "git",\n]\nas-of = 2024-09-15\n\n[base]\ndebian = "bookworm"\n\n[determinism]\n'
        'profile = "portable"\nthreads = 2\nseed = 7\n'
    )
    assert versions(Path("envs/pylock.all.toml"))["torch"] == "2.4.0"


@pytest.mark.parametrize(
    ("requires", "flags", "line"),
    [
        ("==3.11.9", {}, "requires-python is ==3.11.9, and Python 3.11.2 is of Debian bookworm"),
        ("==3.12.4", {}, "requires-python is ==3.12.4, and Python 3.12.1 is a standalone build"),
        ("==3.12.1", {}, ""),
        ("==3.11.2", {}, ""),
        (">=3.12", {}, ""),
        (
            "==3.11.2",
            {"debian": "trixie"},
            "requires-python is ==3.11.2, and Python 3.11.1 is a standalone build",
        ),
    ],
)
def test_another_patch_version_than_the_file_requires_is_told(
    folder: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    requires: str,
    flags: Any,
    line: str,
) -> None:
    list_builds(tmp_path, monkeypatch, "3.11.1", "3.12.1")
    Path("pyproject.toml").write_text(
        f'[project]\nname = "a"\nrequires-python = "{requires}"\ndependencies = ["torch==2.4.1"]\n'
    )
    host = Host(Home(tmp_path / "home"), Console())
    assert env_from_flags({"from": "pyproject.toml", "cuda": "12.1", **flags}, host) is not None
    said = capfd.readouterr().err
    assert (f"pyproject.toml: {line}" in said) if line else ("requires-python" not in said)
