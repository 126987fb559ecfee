"""What benchmarks share: a process watched from outside, medians, and lines that pytest does not swallow."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

_EVERY = 0.25
"""Seconds between two looks at the memory; each goes through all processes, which also takes its time."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What lies between two lines of a process's standard error."""

    title: str
    seconds: float
    own: int
    """Peak of the process itself, bytes resident."""
    tree: int
    """Peak of the process and all that it started; what several share counts for each."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A finished process."""

    stdout: str
    seconds: float
    phases: tuple[Phase, ...]


def watch(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Watched:
    """Run to the end; each line of standard error begins a phase. Fails the test on a status other than 0."""
    begin = time.perf_counter()
    marks = [("start", 0.0)]
    samples: list[tuple[float, int, int]] = []
    with subprocess.Popen(
        argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        reader = threading.Thread(target=lambda out: said.append(out.read()), args=[process.stdout])
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(_EVERY):
                samples.append((time.perf_counter() - begin, *_memory(process.pid)))

        watcher = threading.Thread(target=look)
        reader.start()
        watcher.start()
        marks += [(line.strip(), time.perf_counter() - begin) for line in process.stderr]
        process.wait()
        ended.set()
        reader.join()
        watcher.join()
    seconds = time.perf_counter() - begin
    assert process.returncode == 0, marks
    phases = []
    for (title, start), (_, end) in zip(marks, [*marks[1:], ("", seconds)], strict=True):
        inside = [(own, tree) for at, own, tree in samples if start <= at < end] or [(0, 0)]
        phases.append(Phase(title, end - start, max(o for o, _ in inside), max(t for _, t in inside)))
    return Watched("".join(said), seconds, tuple(phases))


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call took."""
    return timed_with_cpu(call)[0]


def timed_with_cpu(call: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a call took, and those of all processors that it and its children used.

    On a machine that others use too, the second says more.
    """
    start, before = time.perf_counter(), sum(os.times()[:4])
    call()
    return time.perf_counter() - start, sum(os.times()[:4]) - before


def medians(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median of each series."""
    return {name: statistics.median(series) for name, series in times.items()}


class Printer:
    """Prints to the terminal, whatever pytest captures."""

    def __init__(self, capsys: pytest.CaptureFixture[str], title: str) -> None:
        self._capsys = capsys
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        self(f"\n{title} ({len(os.sched_getaffinity(0))} CPUs, load before: {load})")

    def __call__(self, line: str) -> None:
        with self._capsys.disabled():
            sys.stderr.write(f"{line}\n")

    def series(self, times: Mapping[str, Sequence[float]]) -> None:
        """Print each series with its median and, which other work on the machine moves least, its minimum."""
        width = max(map(len, times))
        for name, median in medians(times).items():
            runs = " ".join(f"{value:.2f}" for value in times[name])
            self(f"  {name:<{width}}  {median:7.2f} s, at least {min(times[name]):.2f}   (of {runs})")


def _memory(pid: int) -> tuple[int, int]:
    """Return the resident bytes of a process, and of it with all its descendants."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name in parentheses may hold anything, so fields are counted from its end.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        parents[int(folder.name)] = int(fields[1])
        resident[int(folder.name)] = int(fields[21]) * os.sysconf("SC_PAGESIZE")

    def below(one: int) -> bool:
        while one in parents:
            if one == pid:
                return True
            one = parents[one]
        return False

    return resident.get(pid, 0), sum(size for one, size in resident.items() if below(one))
