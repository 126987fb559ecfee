from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.twice.receipt import project
from reprobuild.twice.receipt.project import BY_HOST, chosen_gpus, code_of, machine_here


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    needs("git")
    git(tmp_path, "init", "--quiet")
    (tmp_path / "train.py").write_text("1")
    (tmp_path / "link").symlink_to("train.py")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", folder, *own, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_commit_and_its_files(repository: Path) -> None:
    found = code_of(repository)
    assert found is not None
    assert found.commit == git(repository, "rev-parse", "HEAD")
    assert not found.dirty
    (repository / "untracked").write_text("no cause")
    assert code_of(repository) == found
    (repository / "train.py").write_text("2")
    changed = code_of(repository)
    assert changed is not None
    assert changed.dirty
    assert changed.commit == found.commit
    assert changed.tree != found.tree
    git(repository, "commit", "--quiet", "-am", "second")
    (repository / "train.py").chmod(0o755)
    executable = code_of(repository)
    assert executable is not None
    assert executable.tree not in (found.tree, changed.tree)


def test_a_folder_without_git_and_one_without_a_commit(tmp_path: Path) -> None:
    needs("git")
    assert code_of(tmp_path) is None
    git(tmp_path, "init", "--quiet")
    found = code_of(tmp_path)
    assert found is not None
    assert (found.commit, found.dirty) == ("", True)


def test_too_many_files_have_no_digest(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "MOST_TRACKED", 1)
    found = code_of(repository)
    assert found is not None
    assert found.tree == ""


def test_a_hook_of_the_repository_is_not_run(repository: Path) -> None:
    hook = repository / "monitor"
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    code_of(repository)
    assert not (repository / "ran").exists()


def test_the_machine_as_its_kernel_tells_it(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: AMD EPYC\n")
    for place, model in (("0000:01:00.0", "NVIDIA T4"), ("0000:02:00.0", "NVIDIA H100")):
        card = tmp_path / "driver/nvidia/gpus" / place / "information"
        card.parent.mkdir(parents=True)
        card.write_text(f"Model: \t\t {model}\n")
    (tmp_path / "driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04\n"
    )
    found = machine_here(None, tmp_path)
    assert {**found, "architecture": ""} == {
        "architecture": "", "processor": "AMD EPYC", "driver": "580.159.04", "gpus": "NVIDIA H100, NVIDIA T4",
    }  # fmt: skip
    assert list(machine_here(None, tmp_path / "none")) == ["architecture"]
    chosen = machine_here("all", tmp_path)
    assert chosen == {**found, "chosen gpus": "all"}
    assert {*chosen} == {*BY_HOST}


def test_which_gpus_the_caller_s_variables_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    assert chosen_gpus({}) == "all"
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "GPU-1a")
    assert chosen_gpus({}) == "CUDA_VISIBLE_DEVICES=GPU-1a"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert chosen_gpus({}) == "CUDA_DEVICE_ORDER=PCI_BUS_ID, CUDA_VISIBLE_DEVICES=1"
    assert chosen_gpus({"CUDA_VISIBLE_DEVICES": "0"}) == "CUDA_DEVICE_ORDER=PCI_BUS_ID"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "\udcff")
    assert "VISIBLE_DEVICES=?" in chosen_gpus({})
