"""The command ``twice``: does a program repeat, and if not, which line is it?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..engines.embedded import OciEngine
from ..errors import RepeatError
from ..host.home import atomic_write
from ..host.host import Host
from ..twice.page import twice_page
from ..twice.report import rows, to_dict, verdict, verdict_line
from ..twice.runs import Comparison, HowToRun, compare_runs
from . import completing
from .output import as_json, emit, table
from .running import in_image, own_command, settings

MOST_TIMES = 20


def _every(_: click.Context, __: click.Parameter, value: str) -> str:
    if value in ("module", "step") or (value.isdecimal() and 0 < int(value) < 10**9):
        return value
    raise click.BadParameter(f"{value!r} is not step, module or a number from 1")


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("image", shell_complete=completing.images)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "--times",
    type=click.IntRange(2, MOST_TIMES),
    default=2,
    show_default=True,
    help="How often it is run.",
)
@click.option("--together", is_flag=True, help="Run all at once, not one after the other.")
@click.option(
    "--every",
    default="step",
    show_default=True,
    metavar="module|step|N",
    callback=_every,
    help="Compare each module's output, each step, or gradients and parameters at every N-th step.",
)
@click.option("--no-trace", is_flag=True, help="Do not look for the first operation if the runs part.")
@click.option(
    "--time-limit", type=click.FloatRange(min=1), metavar="SECONDS", help="Stop a run after that long."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the report as a page (HTML).",
)
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
    no_trace: bool,
    time_limit: float | None,
    output: Path | None,
    json_: bool,
    **options: Any,
) -> None:
    """Run a program twice and say whether it repeats.

    Each run is in a fresh container and writes into its own view of the bound folders, which stay as
    they are.
    Compared are the steps of every optimizer, exit status, output and files, bit for bit. Where the runs
    part, two
    more with a trace look for the first operation. Exit status 16 unless it repeats.

    \b
    reprobuild twice -v $PWD:/work -w /work reprobuild/torch:2.4.1-cu121-py311 -- python3 train.py
    """
    command = own_command(command, "twice")
    if not command:
        raise click.UsageError("no command: pass one after the image, like -- python3 train.py")
    run = OciEngine(host).recorded(image, command, **settings(host.console, **options))
    how = HowToRun(times=times, together=together, every=every, seconds=time_limit, trace=not no_trace)
    found = compare_runs(run, how, lambda: host.home.scratch("twice"), host.console.step)
    if output:
        atomic_write(output, twice_page(found))
    _show(found, output, json_=json_)


COMMANDS: tuple[click.Command, ...] = (twice,)


def _show(found: Comparison, output: Path | None, *, json_: bool) -> None:
    line = verdict_line(found)
    if json_:
        emit(to_dict(found))
    else:
        click.echo(line)
        table("", [*rows(found), *([("page", str(output))] if output else [])])
    match verdict(found):
        case "parts":
            raise RepeatError(f"the program does not repeat: it {line}")
        case "unfinished":
            raise RepeatError(
                f"the program {line}; it did not come to its end, so nothing more is known",
                hint="`reprobuild run` with the same options shows what it says",
            )
        case "repeats":
            pass
