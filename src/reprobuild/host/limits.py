"""Limits of memory and processes for untrusted programs.

Control groups bound them where this user may make some. Where not (most ordinary users), what a run has
started is counted a few times a second, and the run is stopped once it takes more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import HostError
from . import control_groups
from .control_groups import Controller

MEMORY, PROCESSES = "REPROBUILD_MEMORY", "REPROBUILD_PROCESSES"
"""The variables that set the limits of a build's steps and of the self-test."""

MOST_MEMORY = 64 << 30
"""Bytes of a step, on a machine with much more; three quarters of a smaller one's."""

MOST_PROCESSES = 32768
"""Processes and threads of a step or a run; half of what a machine has numbers for, where that is less."""

LEAST_MEMORY = 960 << 20
"""Bytes of this process, for a build or a self-test; three quarters of them for a step.

With less they do not fail: the two processes of the self-test read PyTorch's libraries from the disk again
and again. Page faults that did, PyTorch for the CPU: with 720 MiB for a step 1,000, with 600 MiB 34,000.
"""

LARGEST_FILE = 64 << 30
"""Bytes of a file that a step may write."""

_SIZE = re.compile(r"([0-9]{1,12})([kmgt]?)(i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Of all programs of one run together. None: what the machine has."""

    memory: int | None = None
    """Bytes, with what they write below /tmp and /dev/shm, and their share of the page cache."""
    processes: int | None = None
    """Processes and threads."""


class Guard:
    """Enforces the limits of one run; see `guarded`."""

    def __init__(self, limits: Limits, groups: control_groups.Groups) -> None:
        self._limits, self._groups = limits, groups

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs ``argv`` within the limits."""
        return self._groups.joining(argv)

    def memory_exceeded(self) -> str:
        """Return the limit of memory if the kernel has killed a process for it, else an empty text."""
        return _text(self._limits.memory or 0) if self._groups.reached() == "memory" else ""

    def reached(self, process_id: int) -> str | None:
        """Return the limit that a run has reached, by the process ID of `command`, or None."""
        found = self._groups.reached()
        memory, processes = self._limits.memory, self._limits.processes
        counted = {"memory": memory, "pids": processes}
        missing = [c for c, most in counted.items() if most is not None and c not in self._groups.bounded]
        if found is None and missing:
            tasks, pages = _usage(process_id, exactly_above=memory if "memory" in missing else None)
            if "pids" in missing and processes is not None and tasks >= processes:
                found = "pids"
            elif "memory" in missing and memory is not None and pages > memory:
                found = "memory"
        match found:
            case "memory":
                return f"it took more than {_text(memory or 0)} of memory ({MEMORY})"
            case "pids":
                # The kernel counts a refused process in the group that wanted it, whichever group refused.
                allowed = control_groups.own_limit("pids")
                if processes is not None and allowed is not None and allowed < processes:
                    return f"its control group allows only {allowed} processes and threads (pids.max)"
                return f"it started more than {processes} processes and threads ({PROCESSES})"
            case None:
                return None


@contextmanager
def guarded(limits: Limits, *, by_the_kernel: bool = False) -> Iterator[Guard]:
    """Enforce the limits of one run; none of its processes is left afterwards.

    Raises `HostError` if ``by_the_kernel`` and its memory can be bounded in no control group.
    """
    wanted: dict[Controller, int] = {}
    if limits.memory is not None:
        wanted["memory"] = limits.memory
    if limits.processes is not None:
        wanted["pids"] = limits.processes
    with control_groups.made(wanted) as groups:
        if by_the_kernel and limits.memory is not None and "memory" not in groups.bounded:
            raise HostError(
                "the memory of a run cannot be limited here: you may not make a control group",
                hint="run as root, or in a control group that has the limit: systemd-run --user --scope"
                " --property=MemoryMax=8G reprobuild run ...",
            )
        yield Guard(limits, groups)


def of_steps(env: Mapping[str, str] = os.environ, *, machine: int | None = None) -> Limits:
    """Return the limits of the steps of a build, and of a self-test, as the user or this machine sets them.

    ``machine``: the bytes of memory of the machine that runs it, where that may be another. Raises
    `HostError` for a variable that is no number.
    """
    memory, processes = env.get(MEMORY), env.get(PROCESSES)
    return Limits(
        memory=_default_memory(machine) if not memory else size(memory, MEMORY),
        processes=default_processes() if not processes else number(processes, PROCESSES),
    )


def refuse_too_little(env: Mapping[str, str] = os.environ) -> None:
    """Raise `HostError` where a build or a self-test may take less memory than `LEAST_MEMORY`."""
    own = control_groups.own_limit("memory")
    if own is not None and own < LEAST_MEMORY:
        raise HostError(
            f"this process may take {_text(own)} of memory; an image and its self-test take 1 GiB",
            hint="raise the memory limit of its control group or container (docker run --memory 2g)",
        )
    step = of_steps(env).memory or 0
    if step < LEAST_MEMORY * 3 // 4:
        raise HostError(
            f"a step of a build may take {_text(step)} of memory; the self-test takes"
            f" {_text(LEAST_MEMORY * 3 // 4)}",
            hint=f"set {MEMORY} to 1G or more"
            if env.get(MEMORY)
            else "run it on a machine with 1 GiB of memory or more",
        )


def size(text: str, where: str) -> int:
    """Return the bytes of ``8G`` or ``512MiB``; units are of 1024. Raises `HostError`."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise HostError(f"{where}: {text!r} is not an amount of memory", hint="write it as 8G, 512M or 4096k")
    return int(found[1]) * _UNITS[found[2].lower()]


def number(text: str, where: str) -> int:
    """Return a number of processes. Raises `HostError`."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text.strip()):
        raise HostError(f"{where}: {text!r} is not a number of processes", hint="write it as 4096")
    return int(text)


def default_processes() -> int:
    """Return `MOST_PROCESSES`, or half of what this machine has numbers for."""
    try:
        numbers = int(Path("/proc/sys/kernel/pid_max").read_text("ascii"))
    except (OSError, ValueError):
        return MOST_PROCESSES
    return min(MOST_PROCESSES, numbers // 2)


def _default_memory(machine: int | None) -> int:
    own = None
    if machine is None:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        own = control_groups.own_limit("memory")
    return min(MOST_MEMORY, min(machine, own or machine) * 3 // 4)


def _usage(process_id: int, *, exactly_above: int | None) -> tuple[int, int]:
    """Return the tasks of a process and of all that it has started, and their bytes of memory.

    Pages that several share are counted once where the plain sum is above a limit.
    """
    parents: dict[int, list[int]] = {}
    tasks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                # The name in brackets may hold anything.
                words = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                parents.setdefault(int(words[1]), []).append(int(entry.name))
                tasks[int(entry.name)] = int(words[17])
    family, rest = [], [process_id]
    while rest:
        each = rest.pop()
        family.append(each)
        rest += parents.get(each, ())
    page = os.sysconf("SC_PAGE_SIZE")
    taken = 0
    for each in family if exactly_above is not None else ():
        with suppress(OSError, ValueError, IndexError):
            taken += int(Path(f"/proc/{each}/statm").read_bytes().split()[1]) * page
    if exactly_above is not None and taken > exactly_above:
        taken = sum(map(_proportional, family))
    return sum(tasks.get(each, 0) for each in family), taken


def _proportional(process_id: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{process_id}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    return 0


def _text(amount: int) -> str:
    return f"{amount / (1 << 30):.3g} GiB" if amount >= 1 << 30 else f"{amount >> 20} MiB"
