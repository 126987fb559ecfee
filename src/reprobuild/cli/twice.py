"""The command ``twice``: run a program twice and report the first difference."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..errors import RepeatError
from ..host.host import Host
from ..twice.baseline import Baseline, read_baseline, write_baseline
from ..twice.baseline import against as compare_with
from ..twice.batch import tried_models
from ..twice.ignored import Ignored
from ..twice.recorded_run import HowToRun, RecordedRun, one_run
from ..twice.resume import compare_resumed, resume_command
from ..twice.runs import compare_runs
from ..twice.variations import VARIATIONS
from ..verify.find import find_image
from . import complete
from .output import as_json, file_option
from .receipts import asked_for, begin_receipt
from .run_options import gpus_for, in_image, own_command, receipt, settings
from .twice_output import show, show_agreed, show_batch, show_resumed, show_verdict, write_page

MOST_TIMES = 20


def _every(_: click.Context, __: click.Parameter, value: str) -> str:
    if value in ("module", "step") or (value.isdecimal() and 0 < int(value) < 10**9):
        return value
    raise click.BadParameter(f"{value!r} is not step, module or a number from 1")


def _varied(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    chosen = tuple(value.split(",")) if value else ()
    for name in chosen:
        if name not in VARIATIONS:
            raise click.BadParameter(f"{name!r} cannot be varied: expected some of {', '.join(VARIATIONS)}")
    return chosen


def _expressions(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            raise click.BadParameter(f"{pattern!r} is not a valid regular expression: {error}") from None
    return value


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("image", shell_complete=complete.images)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "--times",
    type=click.IntRange(2, MOST_TIMES),
    default=2,
    show_default=True,
    help="Number of runs.",
)
@click.option("--together", is_flag=True, help="Run all at once instead of one after the other.")
@click.option(
    "--every",
    default="step",
    show_default=True,
    metavar="module|step|N",
    callback=_every,
    help="Compare each module's output, each step, or gradients and parameters at every N-th step.",
)
@click.option(
    "--vary",
    metavar="hashseed,listing,threads,locale",
    callback=_varied,
    help="If the runs are equal, vary one of these in one more run each.",
)
@click.option(
    "--experiments",
    type=click.IntRange(0, 20),
    default=4,
    show_default=True,
    help="Number of suspects to pin, each in two more runs, to prove one the cause.",
)
@click.option("--no-trace", is_flag=True, help="Do not search for the first operation if the runs differ.")
@click.option("--cost", is_flag=True, help="Run once more without the recorder, and report its overhead.")
@click.option(
    "--time-limit", type=click.FloatRange(min=1), metavar="SECONDS", help="Stop a run after this time."
)
@file_option("-o", "--output", text="Also write the report as a page (HTML).")
@file_option("--record", text="If the program repeats, write its digests to a small file.")
@file_option("--against", text="Run the program once and compare with a file of --record.")
@click.option(
    "--resume",
    nargs=2,
    metavar="'SAVE' 'CONTINUE'",
    help="Compare the whole run with these two shell commands, one after the other in one container.",
)
@click.option(
    "--interrupt-at",
    type=click.IntRange(min=1),
    metavar="STEP",
    help="Compare the whole run with one that is stopped after that many steps, and started again.",
)
@click.option(
    "--batch",
    is_flag=True,
    help="Run the program once; see whether a row of its model's answer depends on its batch.",
)
@click.option(
    "--batch-dim",
    type=click.IntRange(0, 7),
    metavar="N",
    help="With --batch: the dimension of the batch. [default: 0, if that cannot be doubted]",
)
@click.option(
    "--ignore-line",
    multiple=True,
    metavar="REGEX",
    callback=_expressions,
    help="Do not compare lines of output and of text files in which REGEX is found.",
)
@click.option(
    "--ignore-file",
    multiple=True,
    metavar="GLOB",
    help="Do not compare files whose path or name matches GLOB.",
)
@receipt
@click.option("--strict", is_flag=True, help="Also fail if only times, random names or the like differ.")
@in_image
@as_json
@click.pass_obj
def twice(
    host: Host,
    /,
    image: str,
    command: tuple[str, ...],
    *,
    times: int,
    together: bool,
    every: str,
    vary: tuple[str, ...],
    experiments: int,
    no_trace: bool,
    cost: bool,
    time_limit: float | None,
    output: Path | None,
    record: Path | None,
    against: Path | None,
    resume: tuple[str, str] | None,
    interrupt_at: int | None,
    batch: bool,
    batch_dim: int | None,
    ignore_line: tuple[str, ...],
    ignore_file: tuple[str, ...],
    strict: bool,
    receipt: Path | None,
    json_: bool,
    **options: Any,
) -> None:
    """Run a program twice and say whether it repeats.

    Each run is in a fresh container and writes into its own view of the bound folders, which stay as they
    are. Compared are the steps of every optimizer, exit status, output and files, bit for bit. Where the
    runs part, two more with a trace look for the first operation. Exit status 16 unless it repeats; times
    and drawn names in its text may differ, unless --strict.

    With --batch the program runs once, and its model is called again with the same rows in other batches.

    An image is a name or digest; docker:NAME and podman:NAME run in these engines. Options come before it.

    \b
    reprobuild twice -v $PWD:/work -w /work \\
        reprobuild/torch:2.4.1-cu121-py311 -- python3 train.py
    """
    command = own_command(command, "twice")
    if not command:
        raise click.UsageError("no command: pass one after the image, like -- python3 train.py")
    _check_together(
        record=record,
        against=against,
        resume=resume or interrupt_at,
        output=output,
        receipt=receipt,
        cost=cost,
        together=together,
    )
    if vary and (against or resume or interrupt_at):
        raise click.UsageError("--vary excludes --against, --resume and --interrupt-at")
    baseline = _baseline(against) if against else None
    ignored = Ignored(ignore_line, ignore_file).together(baseline.ignored if baseline else Ignored())
    how = HowToRun(
        times=times, together=together, every=every, seconds=time_limit, trace=not no_trace, cost=cost,
        ignored=ignored, receipt=receipt is not None, vary=vary, experiments=experiments,
        batch=_batch(batch, batch_dim),
    )  # fmt: skip
    kept = find_image(image, host)
    chosen = settings(host.console, gpus=gpus_for(kept), **options)
    issue = begin_receipt("twice", image, kept, command, chosen) if receipt else None

    def recorded(argv: tuple[str, ...]) -> RecordedRun:
        return kept.engine.recorded(kept.image.digest, argv, chosen)

    def scratch() -> AbstractContextManager[Path]:
        return host.home.scratch("twice")

    if how.batch:
        host.console.step("one run, in which the model is called again with other batches")
        run = one_run(recorded(command), how, scratch)
        show_batch(tried_models(run.streams), run, json_=json_)
        return
    if baseline:
        host.console.step("run 1 of 1")
        show_agreed(
            compare_with(baseline, one_run(recorded(command), how, scratch)), str(against), json_=json_
        )
        return
    if resume or interrupt_at:
        again = resume_command(command, resume, interrupt_at)
        host.console.step("the whole run")
        whole = one_run(recorded(command), how, scratch)
        host.console.step("the run that is stopped and resumed")
        stopped = one_run(recorded(again), how, scratch)
        show_resumed(compare_resumed(whole.streams, stopped.streams), stopped, json_=json_)
        return
    known = partial(show_verdict, json_=json_)
    found = compare_runs(recorded(command), how, scratch, host.console.step, known)
    if output:
        write_page(output, found, asked_for("twice", image, kept, command, chosen))
    show(found, output, json_=json_, strict=strict)
    if receipt and issue:
        issue(receipt, found, host.console)
    if record:
        write_baseline(record, found.runs[0], ignored)
        host.console.step(f"recorded in {record}")


def _baseline(path: Path) -> Baseline:
    """Read a recording. Raises UsageError, which names the file: no program has failed to repeat."""
    try:
        return read_baseline(path)
    except RepeatError as error:
        raise click.UsageError(f"--against: {error.message}; {error.hint}") from None


_BATCH_WITH = ("batch", "batch_dim", "time_limit", "json_")
"""Options of this command that mean something with ``--batch``, beside those of any run."""


def _batch(batch: bool, dim: int | None) -> str:  # noqa: FBT001 -- an option
    """Return the setting of the recorder. Raises UsageError for options that mean nothing with it."""
    if not batch:
        if dim is not None:
            raise click.UsageError("--batch-dim needs --batch")
        return ""
    context = click.get_current_context()
    of_run = {each.name for each in click.command()(in_image(lambda: None)).params}
    for each in context.command.params:
        given = context.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE
        if given and isinstance(each, click.Option) and each.name not in {*_BATCH_WITH, *of_run}:
            raise click.UsageError(f"--batch excludes {each.opts[-1]}")
    return "auto" if dim is None else str(dim)


def _check_together(**given: Any) -> None:
    """Raise UsageError for options that exclude one another."""
    if sum(map(bool, (given["record"], given["against"], given["resume"]))) > 1:
        raise click.UsageError("--record, --against, --resume and --interrupt-at exclude one another")
    other = given["against"] or given["resume"]
    if given["receipt"] and other:
        raise click.UsageError("--receipt excludes --against, --resume and --interrupt-at")
    if given["output"] and other:
        raise click.UsageError(
            "-o is the page of two runs; it excludes --against, --resume and --interrupt-at"
        )
    if given["cost"] and (given["together"] or other):
        raise click.UsageError(
            "--cost is of runs one after the other; it excludes --together, --against, --resume and"
            " --interrupt-at"
        )
