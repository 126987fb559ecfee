"""The child: one interpreter that runs the checks."""

from __future__ import annotations

import faulthandler
import json
import resource
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .exact import difference, fingerprint, kept
from .golden import compare_golden
from .machine import facts, gpu_missing
from .outcomes import NOTES, Failed, Inconclusive, NotRun, Outcome
from .registry import CHECKS, GOLDEN, WITHIN, Check


def execute(checked: Check, device: str) -> Outcome:
    """Run one check; whatever it raises becomes the outcome."""
    start = time.perf_counter()
    outcome = Outcome("passed")
    NOTES.clear()
    try:
        first = checked.run(device) or {}
        outcome.results = {name: fingerprint(value) for name, value in first.items()}
        samples = {name: kept(value) for name, value in first.items()}
        outcome.values = {name: sample for name, sample in samples.items() if sample}
        if WITHIN in checked.compares:
            second = checked.run(device) or {}
            pairs = [difference(name, value, second.get(name)) for name, value in first.items()]
            outcome.detail = [pair for pair in pairs if pair]
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


def child(report: Any, names: Sequence[str], device: str) -> None:
    """Run the checks and write each outcome as a line of JSON to ``report``, a text file."""

    def say(**message: Any) -> None:
        report.write(json.dumps(message) + "\n")
        report.flush()

    faulthandler.enable()
    say(begin=["imports", "cpu"])
    outcome = execute(CHECKS["imports"], "cpu")
    say(end=["imports", "cpu"], outcome=asdict(outcome))
    if outcome.status == "passed":
        missing = "asked for the CPU only" if device == "cpu" else gpu_missing()
        say(**facts(missing))
        for name in names:
            for where in CHECKS[name].devices:
                if name != "imports" and (where == "cpu" or not missing):
                    say(begin=[name, where])
                    say(end=[name, where], outcome=asdict(execute(CHECKS[name], where)))
    say(done=True, peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
