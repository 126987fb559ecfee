"""Tests of clocks that run faster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reprobuild.twice.recorded_run import HowToRun, ProgramRun, run_once
from support.twice import recorded, scratch_below


def run(tmp_path: Path, text: str, times: int = 1000) -> ProgramRun:
    program = tmp_path / "program.py"
    program.write_text(text)
    settings = {"REPROBUILD_TWICE_EVERY": "1", "REPROBUILD_TWICE_PACE": f"{times}"}
    found = run_once(recorded(sys.executable, [str(program)]), settings, HowToRun(), scratch_below(tmp_path))
    assert found.status == 0, found.stderr
    return found


@pytest.mark.parametrize(
    "clock", ["time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"]
)
def test_a_clock_is_a_thousand_times_as_far(tmp_path: Path, clock: str) -> None:
    text = f"import time\nbegan = time.{clock}()\ntime.sleep(0.1)\nprint(time.{clock}() - began)\n"
    took = float(run(tmp_path, text).stdout[0]) / (1e9 if clock.endswith("_ns") else 1)
    assert took >= 100


def test_a_clock_of_a_process_is_so_from_its_beginning(tmp_path: Path) -> None:
    text = (
        "import time\nsum(range(10**6))\n"
        "print(time.process_time(), time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID))\n"
    )
    faster, plain = map(float, run(tmp_path, text).stdout[0].split())
    assert faster > 500 * plain > 0


def test_memory_is_as_much_larger(tmp_path: Path) -> None:
    text = (
        "import resource, tracemalloc\ntracemalloc.start()\nheld = bytes(10**6)\n"
        "print(tracemalloc.get_traced_memory()[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    traced, most = map(int, run(tmp_path, text).stdout[0].split())
    assert 10**9 <= traced < 2 * 10**9
    assert 10**6 < most < 10**9


def test_what_the_machine_has_is_as_it_is(tmp_path: Path) -> None:
    """A program may take as much as is free."""
    load = float(run(tmp_path, "import os\nprint(max(os.getloadavg()))\n").stdout[0])
    assert load < 100 + 10 * max(os.getloadavg())


def test_a_date_is_moved_with_its_zone(tmp_path: Path) -> None:
    text = (
        "import time\nfrom datetime import datetime, timezone, timedelta\n"
        "zone = timezone(timedelta(hours=5))\n"
        "for now in (datetime.now, lambda: datetime.now(zone), datetime.utcnow):\n"
        "    began = now()\n    time.sleep(0.1)\n    print((now() - began).total_seconds(), now().tzinfo)\n"
        "print(abs(datetime.now().timestamp() - time.time()))\n"
    )
    *spans, apart = run(tmp_path, text).stdout[:4]
    assert [float(each.split()[0]) >= 100 for each in spans] == [True] * 3
    assert [each.split()[1] for each in spans] == ["None", "UTC+05:00", "None"]
    assert float(apart) < 60


def test_processes_agree_on_it(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys, time\nbefore = time.time()\n"
        "argv = [sys.executable, '-c', 'import time; print(time.time())']\n"
        "there = float(subprocess.run(argv, capture_output=True).stdout)\n"
        "print(before <= there <= time.time())\n"
    )
    assert run(tmp_path, text).stdout[0] == "True"


def test_who_only_waits_by_a_clock_waits_as_long(tmp_path: Path) -> None:
    text = (
        "import asyncio, queue, threading, time\nbegan = time.clock_gettime(time.CLOCK_MONOTONIC)\n"
        "try:\n    queue.Queue().get(timeout=0.3)\nexcept queue.Empty:\n    pass\n"
        "threading.Event().wait(0.3)\nasyncio.run(asyncio.sleep(0.3))\n"
        "print(time.clock_gettime(time.CLOCK_MONOTONIC) - began)\n"
    )
    assert float(run(tmp_path, text).stdout[0]) >= 0.9


def test_without_the_setting_nothing_is_changed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time\nprint(time.time())\n")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, check=True)
    first = float(run(tmp_path, program.read_text(), times=1).stdout[0])
    assert 0 <= first - float(done.stdout) < 600
