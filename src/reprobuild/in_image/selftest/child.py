"""The child: one interpreter that runs the checks."""

from __future__ import annotations

import faulthandler
import json
import resource
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TextIO

from .exact import difference, fingerprint, kept
from .flags import fill_memory
from .golden import compare_golden
from .machine import facts, gpu_missing
from .outcomes import NOTES, Failed, Inconclusive, NotRun, Outcome
from .power import REPEATED
from .registry import ACROSS, CHECKS, GOLDEN, WITHIN, Check


def refuse_without(checked: Check, device: str) -> None:
    """Raise `NotRun` where something is missing that a check needs."""
    missing = checked.missing(device) if checked.missing else ""
    if missing:
        raise NotRun(missing)


def execute(checked: Check, device: str) -> Outcome:
    """Run one check; whatever it raises becomes the outcome."""
    start = time.perf_counter()
    outcome = Outcome("passed")
    NOTES.clear()
    REPEATED.made = 1
    try:
        refuse_without(checked, device)
        first = checked.run(device) or {}
        outcome.results = {name: fingerprint(value) for name, value in first.items()}
        samples = {name: kept(value) for name, value in first.items()}
        outcome.values = {name: sample for name, sample in samples.items() if sample}
        if WITHIN in checked.compares:
            second = checked.run(device) or {}
            pairs = [difference(name, value, second.get(name)) for name, value in first.items()]
            outcome.detail = [pair for pair in pairs if pair]
        if {WITHIN, ACROSS} & {*checked.compares}:
            outcome.calls = REPEATED.made * (2 if WITHIN in checked.compares else 1)
        if outcome.detail:
            outcome.status, outcome.reason = "failed", "two runs in one process differ"
        elif GOLDEN in checked.compares:
            compare_golden(checked.name, outcome.results)
    except Inconclusive as reason:
        outcome.status, outcome.reason = "inconclusive", str(reason)
    except NotRun as reason:
        outcome.status, outcome.reason = "not-run", str(reason)
    except Failed as failure:
        outcome.status, outcome.reason, outcome.detail = "failed", str(failure), failure.detail
    except Exception as error:  # noqa: BLE001 -- a check that crashes is a failed check
        outcome.status, outcome.reason = "failed", f"it crashed: {type(error).__name__}: {error}"
        outcome.traceback = traceback.format_exc()
    outcome.notes = [*NOTES]
    outcome.seconds = round(time.perf_counter() - start, 3)
    return outcome


def look_for_gpu(device: str, say: Callable[..., None]) -> str:
    """Say what machine this is; return why no GPU is tested, or nothing."""
    missing = "asked for the CPU only" if device == "cpu" else gpu_missing()
    say(**facts(missing))
    return missing


def child(report: TextIO, names: Sequence[str], device: str) -> None:
    """Run the checks and write each outcome as a line of JSON to ``report``, a text file."""

    def say(**message: object) -> None:
        report.write(json.dumps(message) + "\n")
        report.flush()

    faulthandler.enable()
    say(begin=["imports", "cpu"])
    outcome = execute(CHECKS["imports"], "cpu")
    say(end=["imports", "cpu"], outcome=asdict(outcome))
    if outcome.status == "passed":
        fill_memory()
        missing = unhooked = ""
        looked = False
        for checked in (CHECKS[name] for name in names if name != "imports"):
            # Not before what is for the CPU alone: to look for a GPU spoils CUDA for what is forked later.
            if "cuda" in checked.devices and not looked:
                missing, looked = look_for_gpu(device, say), True
            for where in checked.devices:
                if missing and where == "cuda":
                    continue
                say(begin=[checked.name, where])
                gone = checked.hooked and unhooked
                outcome = Outcome("not-run", unhooked) if gone else execute(checked, where)
                if checked.name == "setting-hook" and outcome.status == "failed":
                    unhooked = outcome.reason
                say(end=[checked.name, where], outcome=asdict(outcome))
        if not looked:
            look_for_gpu(device, say)
    say(done=True, peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
