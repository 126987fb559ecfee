"""The parent: two interpreters, one report."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .location import PROGRAM, program_hash
from .machine import SCHEMA
from .outcomes import Outcome
from .power import rate_for
from .registry import ACROSS, CHECKS, CONTROL, SETTING, Check


class Interpreter:
    """A fresh interpreter that runs `child`; its messages are gathered by a thread.

    With ``shown`` it writes to standard error which check begins: "selftest: check 14 of 60".
    """

    def __init__(self, names: Sequence[str], device: str, mode: str, *, shown: bool = False) -> None:
        self.names, self.shown = names, shown
        reading, writing = os.pipe()
        command = [sys.executable, str(PROGRAM), "--child", str(writing), "--device", device]
        command += [*(["--full"] if mode == "full" else []), "--only", *names]
        # Standard output is the report's alone, so what a library prints goes to standard error. A session of
        # its own, so that a DataLoader's workers end with it.
        # Threads that wait by spinning would take the cores from the other interpreter, and double the time;
        # how they wait changes no result.
        environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.close(writing)
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        self.facts: dict[str, Any] = {}
        self.running: tuple[str, str] | None = None
        self.reader = threading.Thread(target=self._read, args=(reading,), daemon=True)
        self.reader.start()

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.endswith("\n"):  # cut off by a kill
                    return
                message = json.loads(line)
                if "begin" in message:
                    self.running = message["begin"][0], message["begin"][1]
                    if self.shown:
                        number = self.names.index(self.running[0]) + 1
                        sys.stderr.write(f"selftest: check {number} of {len(self.names)}\n")
                elif "end" in message:
                    self.outcomes[message["end"][0], message["end"][1]] = Outcome(**message["outcome"])
                    self.running = None
                else:
                    self.facts.update(message)

    def finish(self, deadline: float) -> None:
        """Wait for its end, or kill it at ``deadline`` of time.monotonic; the check it was in has failed."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
            ending = f"the process ended with status {self.process.returncode}"
            if self.process.returncode < 0:
                ending = f"the process was ended by {signal.Signals(-self.process.returncode).name}"
        except subprocess.TimeoutExpired:
            ending = "the time limit passed"
        self.kill()
        self.reader.join()
        if not self.facts.get("done"):
            where = "in this check" if self.running else "between two checks"
            self.outcomes[self.running or ("imports", "cpu")] = Outcome("failed", f"{ending} {where}")

    def kill(self) -> None:
        """End it and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def judge(checked: Check, first: Outcome | None, second: Outcome | None, *, processors: int) -> Outcome:
    """Return the one outcome of a check from what two interpreters saw; None is one that never got to it.

    The battery's control must see nondeterminism where there are two processors, and so something to race:
    else this test has not shown that it could see any, and a pass of the others would mean little.
    """
    if first is None or second is None:
        other = first or second
        return (
            other if other and other.status == "failed" else Outcome("not-run", "a process had ended before")
        )
    for outcome in (first, second):
        if outcome.status == "failed":
            return outcome
    if first.status != second.status:
        if checked.compares == (CONTROL,):  # seen by one of the two is seen
            return first if first.status == "passed" else second
        return Outcome("failed", f"{first.status} in one process, {second.status} in the other")
    if first.status == "inconclusive" and checked.part == "battery" and processors > 1:
        return Outcome("failed", f"{first.reason}, so this test cannot see any here")
    outcome = Outcome(first.status, first.reason, results=first.results, values=first.values)
    outcome.notes = first.notes
    outcome.calls = first.calls + second.calls
    outcome.seconds = max(first.seconds, second.seconds)
    if ACROSS in checked.compares and first.results != second.results:
        names = list({**first.results, **second.results})
        pairs = [(name, first.results.get(name, "none"), second.results.get(name, "none")) for name in names]
        outcome.status, outcome.reason = "failed", "two processes differ"
        outcome.detail = [{"what": name, "expected": a, "got": b} for name, a, b in pairs if a != b]
    return outcome


def report_of(
    names: Sequence[str],
    device: str,
    limit: float,
    mode: str = "battery",
    *,
    part: bool = False,
    left_out: Sequence[str] = (),
    shown: bool = False,
) -> dict[str, Any]:
    """Run the checks in two interpreters and return the report.

    ``mode``: "battery", "full" or "prove"; ``part``: these are not all of its checks, and the report says so.
    ``left_out`` are named in the report as not run. ``shown``: standard error says which check begins.
    """
    start = time.monotonic()
    pair: list[Interpreter] = []
    try:
        for number in range(2):
            own = [name for name in names if not (number and CHECKS[name].once)]
            pair.append(Interpreter(own, device, mode, shown=shown and not number))
        for interpreter in pair:
            interpreter.finish(start + limit)
    finally:
        for interpreter in pair:
            interpreter.kill()
    known = {**pair[1].facts, **pair[0].facts}
    gpu = known.get("gpu", {"tested": False, "reason": "no process got far enough to look for one"})
    checks = []
    for name in names:
        for where in CHECKS[name].devices:
            if where == "cuda" and not gpu["tested"] and device != "cuda":
                continue
            saw = [pair[0]] * 2 if CHECKS[name].once else pair
            seen = (interpreter.outcomes.get((name, where)) for interpreter in saw)
            outcome = judge(CHECKS[name], *seen, processors=len(os.sched_getaffinity(0)))
            checks.append(entry(CHECKS[name], where, outcome))
    for checked in (CHECKS[name] for name in left_out):
        where = checked.devices[0]
        if where == "cuda" and not gpu["tested"]:
            continue
        missing = checked.missing(where) if checked.missing else ""
        reason = missing or "it takes longer: --full"
        checks.append(entry(checked, where, Outcome("not-run", reason)))
    if device == "cuda" and not gpu["tested"]:
        lacking = Check(
            "gpu", "A GPU is visible, as --device cuda requires", (SETTING,), ("cuda",), CHECKS["imports"].run
        )
        checks.append(entry(lacking, "cuda", Outcome("failed", gpu["reason"])))
    statuses = {line["status"] for line in checks}
    unsure = mode == "prove" and "inconclusive" in statuses
    return {
        "schema": SCHEMA,
        "program": program_hash(),
        "mode": "part" if part and mode != "prove" else mode,
        "verdict": "failed" if "failed" in statuses else "inconclusive" if unsure else "passed",
        "versions": known.get("versions", {}),
        "scope": known.get("scope", {}),
        "gpu": gpu,
        "checks": checks,
        "seconds": round(time.monotonic() - start, 3),
        "peak_memory_bytes": max(interpreter.facts.get("peak_memory_bytes", 0) for interpreter in pair),
    }


def entry(checked: Check, device: str, outcome: Outcome) -> dict[str, Any]:
    """Return a check's place in the report."""
    whole = json.dumps(outcome.results, sort_keys=True).encode()
    return {
        "name": checked.name,
        "proves": checked.proves,
        "compares": list(checked.compares),
        "device": device,
        **asdict(outcome),
        "rate": round(rate_for(outcome.calls), 4) if outcome.calls else None,
        "scope": "any" if checked.anywhere and device == "cpu" else "kind",
        "fingerprint": hashlib.sha256(whole).hexdigest() if outcome.results else None,
    }
