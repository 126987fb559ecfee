"""Run the self-test on the nodes of a Slurm cluster: a job array with one task bound to each node.

A task runs the self-test alone, and then twice at once, since contention alone has made results differ. Nodes
need the folder of the reports and reprobuild's home, with the image, on a file system that they share.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import HostError, SelfTestError
from ..host import process
from ..host.console import Console
from ..host.home import kind_of, open_regular
from .fleet import Machine
from .report import LARGEST, SelfTestReport

RUNS = ("alone", "busy 1", "busy 2")
"""What a node does: the battery alone, and then twice at once."""

_READY = ("idle", "mixed", "allocated", "completing", "reserved", "planned")
_FLAGS = "~#!%$@^-+"
"""Suffixes of sinfo(1) that leave a state usable."""

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_NUMBER = re.compile(r"[0-9]{1,18}")

_PURPOSE = "for --slurm, on a machine that may submit jobs"
_MOST_SECONDS = 120
"""Time limit in seconds for an answer of the scheduler."""
_EVERY = 2.0
"""Seconds between two questions to the scheduler, which serves all of the cluster."""

_TASK = """\
#!/bin/sh
# One node: the battery alone, then twice at once. Each report is there as a whole or not at all.
cd {folder} || exit 1
exec > "$SLURM_ARRAY_TASK_ID.log" 2>&1
battery() {{
    {command} > "$1.partial" 2> "$1.log" </dev/null
    status=$?
    # 0 and 9: a report was written, of an image that passed or failed.
    case $status in 0|9) mv "$1.partial" "$1.json" ;; *) return "$status" ;; esac
}}
printf '%s\\n' "$SLURMD_NODENAME" > "$SLURM_ARRAY_TASK_ID.node"
battery "$SLURM_ARRAY_TASK_ID-0" || exit
battery "$SLURM_ARRAY_TASK_ID-1" & first=$!
battery "$SLURM_ARRAY_TASK_ID-2"
second=$?
wait "$first" && exit "$second"
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where to run, and for how long."""

    partition: str = ""
    """Its name; empty for the cluster's default."""
    minutes: int = 60
    """For the wait in the queue and for the test."""


@dataclass(frozen=True, slots=True)
class Silent:
    """A node with missing reports, and the reason."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the nodes of a partition reported."""

    machines: tuple[Machine, ...]
    """Named like ``n1`` and ``n1 busy 1``."""
    silent: tuple[Silent, ...]

    def node_of(self, machine: str) -> str:
        """Return the node of a machine's name."""
        return machine.partition(" ")[0]


def drain(node: str, reason: str) -> str:
    """Return the command by which an administrator takes a node out of the cluster."""
    return shlex.join(
        ["scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason=reprobuild: {reason}"]
    )


def run_on_nodes(command: Sequence[str], folder: Path, console: Console, cluster: Cluster) -> Gathered:
    """Run the self-test on each node of a partition, and gather the reports.

    ``command`` prints a report. What has not ended in time is cancelled, and so is everything if this process
    is stopped. Raises `HostError` if Slurm is missing or refuses.
    """
    nodes, silent = _nodes(cluster.partition)
    if not nodes:
        told = "; ".join(f"{each.node}: {each.reason}" for each in silent) or "it has none"
        raise HostError(
            f"no node of the partition {cluster.partition or 'that is the default'} is ready: {told}",
            hint="`sinfo` lists partitions and nodes; --slurm=PARTITION names one",
        )
    for each in silent:
        console.warn(f"{each.node} is not tested: {each.reason}")
    with _submitted(command, folder, cluster, nodes) as job:
        console.step(f"Slurm job {job}: {len(nodes)} nodes, reports in {folder}")
        states = _await(job, nodes, cluster.minutes, console)
    found = [_read(folder, number, node, states.get(number, "")) for number, node in enumerate(nodes)]
    machines = tuple(machine for reports, _ in found for machine in reports)
    return Gathered(machines, (*silent, *(each for _, each in found if each is not None)))


def _tried(program: str, *arguments: str) -> process.Completed:
    """Run a command of Slurm, with retries while the scheduler is busy or restarts."""
    path = process.require(program, _PURPOSE)
    try:
        return process.run([path, *arguments], check=False, timeout=_MOST_SECONDS)
    except process.ProcessTimeout as late:
        return process.Completed(124, b"", str(late).encode())


def _asked(program: str, *arguments: str, stdin: bytes | None = None) -> str:
    """Return what a command of Slurm prints. Raises `HostError` with what it says."""
    path = process.require(program, _PURPOSE)
    try:
        done = process.run([path, *arguments], stdin=stdin, timeout=_MOST_SECONDS)
    except process.ProcessFailed as failed:
        raise HostError(
            f"Slurm refused: {program}: {failed.tail}",
            hint="`sinfo` and `squeue` must work here, and you must be allowed to submit to the partition",
        ) from None
    except process.ProcessTimeout:
        raise HostError(f"Slurm does not answer: {program}", hint="`scontrol ping` shows its state") from None
    return done.stdout.decode("utf-8", "replace")


def _nodes(partition: str) -> tuple[list[str], tuple[Silent, ...]]:
    """Return the nodes of a partition that accept jobs, and the others."""
    of = [f"--partition={partition}"] if partition else []
    said = _asked("sinfo", "--noheader", "--Node", "--format=%N|%P|%T", *of)
    lines = [line.strip().split("|") for line in said.splitlines() if line.strip()]
    if odd := next((line for line in lines if len(line) != 3 or not _NODE.fullmatch(line[0])), None):
        raise HostError(
            f"Slurm refused: sinfo said {'|'.join(odd)[:200]!r}, which is not a node and its state"
        )
    if not partition:
        lines = [line for line in lines if line[1].endswith("*")]
    states = {name: state for name, _, state in lines}
    ready = [name for name, state in states.items() if state.rstrip(_FLAGS) in _READY]
    others = (
        Silent(name, f"Slurm says that it is {state}") for name, state in states.items() if name not in ready
    )
    return sorted(ready, key=_natural), tuple(others)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


@contextmanager
def _submitted(command: Sequence[str], folder: Path, cluster: Cluster, nodes: Sequence[str]) -> Iterator[str]:
    """Submit the array, give its number, and cancel what is left of it at the end."""
    script = _TASK.format(folder=shlex.quote(str(folder)), command=shlex.join(command))
    options = [
        *("--parsable", "--hold", "--job-name=reprobuild", f"--array=0-{len(nodes) - 1}"),
        *("--nodes=1", "--ntasks=1", "--exclusive", "--no-requeue", f"--time={cluster.minutes}"),
        # The task goes to its folder by itself: in these, sbatch(1) expands % and reads \\ as a mark.
        *("--chdir=/", "--output=/dev/null"),
        *([f"--partition={cluster.partition}"] if cluster.partition else []),
    ]
    said = _asked("sbatch", *options, stdin=script.encode()).strip()
    job = said.partition(";")[0]  # behind it the name of a cluster
    if not _NUMBER.fullmatch(job):
        raise HostError(f"Slurm refused: sbatch said {said[:200]!r}, which is not a job ID")
    try:
        # An array is submitted as a whole; where each task runs is said of each, before any is let go.
        for number, node in enumerate(nodes):
            _asked("scontrol", "update", f"JobId={job}_{number}", f"ReqNodeList={node}")
        _asked("scontrol", "release", job)
        yield job
    finally:
        _tried("scancel", "--quiet", job)


def _await(job: str, nodes: Sequence[str], minutes: int, console: Console) -> Mapping[int, str]:
    """Wait until the tasks have ended, or the time is over; return how the scheduler saw each last."""
    pause, running = threading.Event(), dict[int, str]()
    for _ in range(int(minutes * 60 / _EVERY)):
        asked = _tried("squeue", "--noheader", "--array", f"--jobs={job}", "--format=%K|%T|%r")
        lines = [line.split("|") for line in asked.stdout.decode("utf-8", "replace").splitlines()]
        there = {
            int(line[0]): f"{line[1]}, {line[2]}"
            for line in lines
            if len(line) == 3 and _NUMBER.fullmatch(line[0])
        }
        # A scheduler that does not answer for a moment says nothing of its jobs.
        if asked.returncode == 0 or b"Invalid job id" in asked.stderr:
            there = {number: state for number, state in there.items() if number < len(nodes)}
            for number in sorted(running.keys() - there.keys()):
                console.step(f"{nodes[number]} has ended")
            running = there
            if not running:
                return _ends(job, len(nodes))
        pause.wait(_EVERY)
    late = {number: f"not ended after {minutes} minutes: {state}" for number, state in running.items()}
    return {**_ends(job, len(nodes)), **late}


def _ends(job: str, count: int) -> Mapping[int, str]:
    """Return how each task ended, as long as the scheduler remembers it."""
    found = {}
    for number in range(count):
        done = _tried("scontrol", "--oneliner", "show", "job", f"{job}_{number}")
        text = done.stdout.decode("utf-8", "replace")
        fields = dict(part.partition("=")[::2] for part in text.split())
        if "JobState" in fields:
            reason = fields.get("Reason", "None")
            found[number] = fields["JobState"] + (f" ({reason})" if reason != "None" else "")
    return found


def _read(folder: Path, number: int, node: str, state: str) -> tuple[list[Machine], Silent | None]:
    """Return a node's reports, and the reasons for missing ones."""
    ran_on = _text(folder / f"{number}.node").strip()
    if ran_on and ran_on != node:
        # In a folder that others can write to it may be a link to something that is nobody's to see.
        other = ran_on if _NODE.fullmatch(ran_on) else "something that is not a node"
        return [], Silent(node, f"Slurm ran its task on {other}")
    machines, missing = [], ""
    for run, title in enumerate(RUNS):
        path = folder / f"{number}-{run}.json"
        try:
            with open_regular(path) as file:
                report = SelfTestReport.parse_kept(file.read(LARGEST + 1))
        except (OSError, SelfTestError) as error:
            said = error.message if isinstance(error, SelfTestError) else _last(folder, number, run)
            why = "; ".join(filter(None, (state, said))) or "it did not answer"
            missing = missing or f"no report of its run {title!r}: {why}"
            continue
        machines.append(Machine(name=node if run == 0 else f"{node} {title}", report=report))
    return machines, Silent(node, missing) if missing else None


def _last(folder: Path, number: int, run: int) -> str:
    """Return the end of the log of a run, or of its task."""
    for name in (f"{number}-{run}.log", f"{number}.log"):
        if lines := _text(folder / name).strip().splitlines():
            return lines[-1][:300]
    return ""


def _text(path: Path) -> str:
    if kind_of(path) != "file":
        return ""
    with open_regular(path) as file:
        return file.read(1 << 16).decode("utf-8", "replace")
