from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from reprobuild.errors import HostError
from reprobuild.host import process
from reprobuild.host.machine import architecture, choosing_variable, identity, visible_devices, visible_gpus


def a_proc(folder: Path) -> Path:
    for name, text in (
        ("sys/kernel/random/boot_id", "one\n"),
        ("cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\ncpu MHz\t\t: 2999.1\nbogomips\t: 5998.2\n"),
        ("driver/nvidia/version", "NVRM version: 550.54\n"),
        ("driver/nvidia/gpus/0000:01:00.0/information", "Model: Some GPU\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_this_machine_has_one_and_it_stays() -> None:
    assert identity() is not None
    assert identity() == identity()


def an_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = "GPU-1") -> Path:
    program = folder / "bin/nvidia-smi"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


def test_it_changes_with_the_machine_and_not_with_its_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = a_proc(tmp_path)
    an_smi(tmp_path, monkeypatch)
    first = identity(proc)
    text = (proc / "cpuinfo").read_text()
    (proc / "cpuinfo").write_text(text.replace("2999.1", "1200.0").replace("5998.2", "5998.3"))
    assert identity(proc) == first
    seen = {first}
    for name in ("sys/kernel/random/boot_id", "cpuinfo", "driver/nvidia/version"):
        (proc / name).write_text("another\n")
        seen.add(identity(proc))
    a_proc(proc)
    (proc / "driver/nvidia/gpus/0000:02:00.0").mkdir()
    (proc / "driver/nvidia/gpus/0000:02:00.0/information").write_text("Model: Some GPU\n")
    seen.add(identity(proc))
    assert len(seen) == 5


def test_it_changes_with_what_is_set_of_the_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ECC, MIG and limits can change without a restart; so can the choice of GPUs."""
    proc, program = a_proc(tmp_path / "proc"), an_smi(tmp_path, monkeypatch)
    seen = [identity(proc)]
    for text in (
        "GPU-1, Enabled, Disabled, Default, 700.00 W, 1980 MHz",
        "GPU-1, Disabled, Disabled, Default",
    ):
        an_smi(tmp_path, monkeypatch, text)
        seen.append(identity(proc))
    (proc / "driver/nvidia/capabilities/gpu0/mig/gi1").mkdir(parents=True)
    (proc / "driver/nvidia/capabilities/gpu0/mig/gi1/access").touch()
    seen.append(identity(proc))
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "1")
        seen.append(identity(proc))
    assert len(set(seen)) == len(seen) == 7
    program.write_text(f"#!/bin/sh\necho $1 > {tmp_path}/asked\n")
    identity(proc)
    asked = {"uuid", "driver_version", "ecc.mode.current", "mig.mode.current", "compute_mode", "power.limit"}
    query = (tmp_path / "asked").read_text().strip().removeprefix("--query-gpu=")
    assert {*query.split(",")} == {*asked, "clocks.max.sm"}
    program.write_text("#!/bin/sh\nexit 9\n")
    assert identity(proc) is None


def test_gpus_that_nobody_can_ask_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nvidia-smi nothing tells ECC or the power limit; in WSL there is no /proc/driver/nvidia."""
    monkeypatch.setattr(process, "which", lambda _: None)
    proc, dev = a_proc(tmp_path / "proc"), tmp_path / "dev"
    assert identity(proc, dev) is None
    shutil.rmtree(proc / "driver")
    assert identity(proc, dev) is not None
    dev.mkdir()
    (dev / "dxg").touch()
    assert identity(proc, dev) is None
    program = an_smi(tmp_path, monkeypatch)
    monkeypatch.setattr(process, "which", lambda _: str(program))
    first = identity(proc, dev)
    an_smi(tmp_path, monkeypatch, "GPU-1, 581.80")
    assert None is not first != identity(proc, dev)


@pytest.mark.parametrize(
    ("environ", "visible"),
    [
        ({}, None),
        ({"CUDA_VISIBLE_DEVICES": "2,3"}, "2,3"),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-1a,GPU-2b"}, "GPU-1a,GPU-2b"),
        ({"NVIDIA_VISIBLE_DEVICES": "MIG-1a"}, "MIG-1a"),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-1a", "CUDA_VISIBLE_DEVICES": "0"}, "0"),
        *(({"NVIDIA_VISIBLE_DEVICES": text}, None) for text in ("all", "void", "none", "", "0", "GPU-1,0")),
    ],
)
def test_which_gpus_a_caller_has_chosen(environ: dict[str, str], visible: str | None) -> None:
    assert visible_devices(environ).get("CUDA_VISIBLE_DEVICES") == visible
    assert environ.get(choosing_variable(environ)) == visible or visible is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("0", ["0"]),
        ("2,0", ["2", "0"]),
        ("1gpu2, 2ampere", ["1", "2"]),
        ("+0", ["0"]),
        ("0x0", ["0"]),
        ("0;1", ["0"]),
        ("0,0", []),
        ("0,00", []),
        ("1,-1,0", ["1"]),
        ("GPU-1a,GPU-2b", ["GPU-1a", "GPU-2b"]),
        ("GPU-1a,0", ["GPU-1a"]),
        ("GPU-1a,GPU-1a", []),
        ("MIG-1a", ["MIG-1a"]),
        ("0,GPU-1a", ["0"]),
        *((text, []) for text in ("", "-1", "NoDevFiles", "none", " ", ",0", "gpu-1a")),
        ("9" * 5000, ["9" * 5000]),
    ],
)
def test_a_choice_is_read_as_cuda_reads_it(text: str, left: list[str]) -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": text}) == left


def test_a_boot_that_has_no_name_is_not_known(tmp_path: Path) -> None:
    proc = a_proc(tmp_path)
    (proc / "sys/kernel/random/boot_id").unlink()
    assert identity(proc) is None


def test_debian_s_name_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert architecture() == "arm64"
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(HostError, match="riscv64"):
        architecture()
