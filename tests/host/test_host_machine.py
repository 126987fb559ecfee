from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import HostError
from reprobuild.host.machine import architecture, identity


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


def test_it_changes_with_the_machine_and_not_with_its_clock(tmp_path: Path) -> None:
    proc = a_proc(tmp_path)
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
