"""Shows, on the machine it runs on, whether this environment's PyTorch gives the same bits for the same seed.

    python selftest.py [--json] [--device auto|cpu|cuda] [--full | --prove | --cost] [--only NAME ...]
                       [--list] [--time-limit SECONDS]

One file of the standard library, torch and numpy; it runs in any image, also in ones that reprobuild did not
build (their settings are judged like any others, and rightly fail). It writes its report, and scratch files
below the folder for temporary files; it needs no network. The checks of several processes need /dev/shm and a
loopback interface.

Two fresh interpreters run every check at the same time. Each runs a check twice and compares the bytes of the
results ("within"); the parent, which never imports torch, compares the two interpreters ("across"). Settings
are compared with what they have to be ("setting"). A control does the opposite: it has to see results differ
with determinism off, or it says that it saw nothing. Results that are the same on every machine ("golden")
are compared with the values in golden.json, beside this file, by torch's version and the architecture.

The plain battery takes seconds. ``--full`` adds what takes longer, ``--prove`` runs the controls alone, each
of which has to see nondeterminism come and go here, and ``--cost`` measures what determinism costs.

A check is one function below ``@check``; its docstring says what it proves. It takes the device ("cpu" or
"cuda") and returns its results by name (tensors, arrays, bytes, or values with a telling repr), or None. It
raises `Failed` with what differed, `Inconclusive` or `NotRun` with the reason; any other exception, and the
death of the process, is a failure with its traceback.

The report is one JSON object on standard output; everything else goes to standard error, also the line
"selftest: check 14 of 60" where a check begins:

    schema      3
    program     sha256 of this file: results of another program are not comparable
    mode        "battery", "full" or "prove"; "part" when --only chose some checks of the first two
    verdict     "passed" or "failed"; inconclusive and not-run checks do not fail. With --prove "passed" only
                when no control is inconclusive, else "inconclusive"
    versions    python, torch, numpy, cuda, cudnn (null where there is none)
    scope       the kind of machine: cpu (model, capability, threads, ...), gpu (name, sm_count, driver, ...)
                or null
    gpu         tested (bool) and reason (why not)
    checks      name, proves, compares, device, status (passed, failed, inconclusive, not-run), reason,
                detail [{what, expected, got}], results {name: sha256 of shape, type and raw bytes},
                scope: where the results hold, on "any" machine with these versions, or on one "kind",
                values {name: {type, data}}: of each float result at most 32 values, evenly spread, as
                base64 of little-endian bytes, so that reports of two machines can be compared in ULP,
                notes (what was seen beside the outcome), fingerprint (sha256 over results) or null,
                calls (how often the operation was called, in all runs and both interpreters, on its
                smallest shape; 0 where nothing is compared), rate (a deviation in this share of calls
                is found with 99 %; null without calls), seconds, traceback
    seconds, peak_memory_bytes (of the larger of the two interpreters)

With ``--cost`` it holds schema, program, mode "cost", versions, scope, gpu and seconds as above, and

    costs       name, device, on and off (seconds, the fastest round), ratio (on / off), rounds, and reason:
                why it was not measured, else empty; then the numbers are null

Exit status: 0 passed, 1 a check failed, 2 bad arguments, 3 --prove was inconclusive.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence

from . import (  # noqa: F401 -- they register their checks
    batches,
    compilation,
    controls,
    data,
    documented,
    golden,
    installed,
    kernels,
    operations,
    public,
    ranks,
    requested,
    seeds,
    settings,
    subnormals,
    training,
)
from .child import child
from .cost import cost_report
from .outcomes import NotRun
from .parent import report_of
from .power import REPEATED
from .registry import CHECKS, in_order
from .settings import START
from .text import cost_text, text_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="write the report as JSON")
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="cuda: fail without a GPU"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--full", action="store_true", help="also what takes longer")
    mode.add_argument("--prove", action="store_true", help="the controls: see nondeterminism come and go")
    mode.add_argument("--cost", action="store_true", help="what determinism costs")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=CHECKS,
        help="run these checks only",
    )
    parser.add_argument("--list", action="store_true", help="list the checks and end")
    parser.add_argument("--time-limit", type=float, default=240.0, metavar="SECONDS", help="default: 240")
    parser.add_argument(
        "--start", metavar="JSON", help="how the image's entry point starts Python, as a list"
    )
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.start:
        os.environ[START] = options.start  # for the interpreters that are started here
    kind = "prove" if options.prove else "full" if options.full else "battery"
    if options.list:
        listed = [c for c in in_order() if options.only is None or c.name in options.only]
        sys.stdout.writelines(
            f"{c.name:24} {c.part:8} {','.join(c.devices):9} {'+'.join(c.compares):21} {c.proves}\n"
            for c in listed
        )
        return 0
    parts = {"battery": {"battery"}, "full": {"battery", "full"}, "prove": {"prove"}}[kind]
    names = [c.name for c in in_order() if (c.name in options.only if options.only else c.part in parts)]
    names = ["imports", *(name for name in names if name != "imports")]
    if options.child is not None:
        with os.fdopen(options.child, "w", encoding="utf-8") as report:
            REPEATED.set_for("full" if options.full else "battery")
            child(report, names, options.device)
        return 0
    if options.cost:
        try:
            costs = cost_report(options.device)
        except NotRun as reason:
            sys.stderr.write(f"--device cuda: no GPU was found: {reason}\n")
            return 1
        sys.stdout.write(json.dumps(costs, indent=1) + "\n" if options.json else cost_text(costs))
        return 0
    # Without this, the death of process 1 by SIGTERM would leave the two interpreters behind on a host.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    whole = kind == "battery" and not options.only
    left_out = [c.name for c in in_order() if whole and c.part == "full"]
    more = {"part": bool(options.only), "shown": options.json}
    result = report_of(names, options.device, options.time_limit, kind, left_out=left_out, **more)
    sys.stdout.write(json.dumps(result, indent=1) + "\n" if options.json else text_of(result))
    sys.stdout.flush()
    return {"passed": 0, "failed": 1, "inconclusive": 3}[result["verdict"]]


if __name__ == "__main__":
    sys.exit(main())
