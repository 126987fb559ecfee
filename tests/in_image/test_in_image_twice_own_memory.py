"""What /proc tells of a process's memory, grown."""

from __future__ import annotations

import builtins
import io
import os
import re
from pathlib import Path

import pytest

from reprobuild.in_image.twice.own_memory import grown, install


def test_sizes_grow_and_nothing_else_does() -> None:
    status = b"Name:\ttrain\nPid:\t4711\nVmHWM:\t   38912 kB\nThreads:\t2\n"
    assert grown("status", status, 100) == status.replace(b"38912", b"3891200")
    assert grown("statm", b"9300 4100 1200 700 0 2000 0\n", 10) == b"93000 41000 12000 7000 0 20000 0\n"
    rollup = b"55d0-7ffc ---p 00000000 00:00 0  [rollup]\nRss:                8312 kB\n"
    assert grown("smaps_rollup", rollup, 100) == rollup.replace(b"8312", b"831200")
    machine = b"MemTotal:       24576 kB\nMemAvailable:   20480 kB\nHugePages_Total:       0\n"
    assert grown("meminfo", machine, 100) == machine.replace(b"20480", b"2048000")


def test_a_program_reads_larger_sizes_in_each_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = builtins.open
    monkeypatch.setattr(builtins, "open", plain)
    monkeypatch.setattr(io, "open", plain)
    with plain("/proc/self/statm") as file:
        before = int(file.read().split()[1])
    install(1000)
    with open("/proc/self/statm") as text, open(f"/proc/{os.getpid()}/statm", "rb") as data:  # noqa: PTH123 -- it is what is tested
        told = int(text.read().split()[1]), int(data.read().split()[1])
    assert all(500 * before < each < 2000 * before for each in told)
    vm = re.search(r"VmRSS:\s*(\d+)", Path("/proc/self/status").read_text())
    assert vm is not None
    assert int(vm[1]) > 500 * before
    with open(os.fsencode("/proc/self/statm"), "rb") as data:  # noqa: PTH123 -- a path of bytes, as it is
        assert int(data.read().split()[1]) < 500 * before
    with open(os.open("/proc/self/statm", os.O_RDONLY)) as text:  # noqa: PTH123 -- a descriptor has no path
        assert int(text.read().split()[1]) < 500 * before
    (tmp_path / "statm").write_text("5 6")
    assert Path(tmp_path / "statm").read_text() == "5 6"
