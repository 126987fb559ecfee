"""Output of ``twice``, and its error if a program does not repeat."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from ..errors import RepeatError
from ..host.home import atomic_write
from ..twice.baseline import STATUS, Agreed
from ..twice.batch import TriedModel, batch_dict, batch_line, batch_rows, worst
from ..twice.cause_report import ulp_text
from ..twice.first_difference import status_text
from ..twice.page import AboutRun, lines_around, places_of, twice_page
from ..twice.receipt.make import Asked
from ..twice.receipt.program_files import open_in
from ..twice.recorded_run import Comparison, ProgramRun
from ..twice.report import rows, to_dict, verdict, verdict_line, where
from ..twice.resume import Resumed
from .output import emit, table

MOST_ROWS = 12
MOST_SOURCE = 4 << 20
"""Bytes of a source whose lines are shown on the page."""


def write_page(path: Path, found: Comparison, asked: Asked) -> None:
    """Write the report as a page, with the source around the cause where that is in a bound folder."""
    about = AboutRun(
        rows=[
            ("command", shlex.join(asked.command)),
            ("image", f"{asked.image} ({asked.digest})"),
            *([("lock", asked.lock)] if asked.lock else []),
            *([("folders", ", ".join(bind.destination for bind in asked.binds))] if asked.binds else []),
            *([("variables", ", ".join(sorted(asked.variables)))] if asked.variables else []),
        ]
    )
    sources = []
    for place in places_of(found):
        try:
            with open_in(place.file, asked.binds) as file:
                source = file.read(MOST_SOURCE).decode(errors="replace")
        except OSError:  # in the image, or gone
            continue
        sources.append((str(place), lines_around(source, place.line)))
    about = replace(about, sources=[each for each in sources if each[1]])
    atomic_write(path, twice_page(found, about))


def show_verdict(found: Comparison, *, json_: bool) -> None:
    """Write the verdict."""
    if not json_:
        click.echo(verdict_line(found))


def show(found: Comparison, output: Path | None, *, json_: bool, strict: bool) -> None:
    """Write a report below the verdict. Raises `RepeatError` unless the program repeats."""
    line = verdict_line(found)
    if json_:
        emit(to_dict(found))
    else:
        table("", [*rows(found), *([("page", str(output))] if output else [])])
    match verdict(found):
        case "parts":
            raise RepeatError(f"the program does not repeat: it {line}")
        case "unfinished":
            raise RepeatError(
                f"the program {line}; it did not finish, so nothing more is known",
                hint="`reprobuild run` with the same options shows what it says",
            )
        case "text" if strict:
            raise RepeatError(
                f"--strict: the program's {line}",
                hint="print no times, or leave lines out with --ignore-line and files with --ignore-file",
            )
        case "repeats" | "text":
            pass


def show_batch(found: Sequence[TriedModel], run: ProgramRun, *, json_: bool) -> None:
    """Write whether rows depend on their batch. Raises `RepeatError` unless they do not."""
    line, model = batch_line(found), worst(found)
    if json_:
        emit({**batch_dict(found), "status": run.status})
    else:
        click.echo(line)
        lines = batch_rows(found)
        if run.status != 0:
            lines += [("the program", status_text(run.status)), ("it said", run.last)]
        table("", lines)
    if model is None:
        raise RepeatError(
            line, hint="the command has to call a model, by itself or in a Python that it starts"
        )
    if model.verdict != "independent":
        raise RepeatError(line)


def show_agreed(found: Agreed, path: str, *, json_: bool) -> None:
    """Write how a run compares with a baseline. Raises `RepeatError` if it does not match."""
    differing = len(found.distances)
    largest = max((row.ulp or 0 for row in found.distances), default=0)
    if found.kinds:
        line = f"{path} is of another kind of machine: {differing} of {found.steps} moments differ"
        line += f", by {ulp_text(largest)} at most" if largest else ""
        line += f"; another end: {', '.join(found.output[:5])}" if found.output else ""
    elif found.holds:
        line = f"the same bits as {path} ({found.steps} moments)"
    elif found.parting is not None:
        line = f"parts from {path} at {where(found.parting)}"
    else:
        line = f"the same steps as {path}, but another end: {', '.join(found.output[:5])}"
    if json_:
        emit({"line": line, "holds": found.holds, **asdict(found)})
    else:
        click.echo(line)
        shown = [(row.label, f"{ulp_text(row.ulp)} {', '.join(row.parted[:6])}") for row in found.distances]
        more = [("", f"{differing - MOST_ROWS} more")] if differing > MOST_ROWS else []
        ends = [("another end", name) for name in found.output]
        lines = [*(("differs", kind) for kind in found.kinds), *shown[:MOST_ROWS], *more, *ends[:MOST_ROWS]]
        if lines:
            table("", lines)
    other_steps = found.kinds and found.distances and STATUS not in found.output
    if not found.holds:
        raise RepeatError(
            f"{line}; and it took other steps" if other_steps else line,
            hint="the same command without --against says whether the program itself repeats, and if not, on"
            " which line; if the change is intended, keep the new digests with --record",
        )


def show_resumed(found: Resumed, stopped: ProgramRun, *, json_: bool) -> None:
    """Write the result of a resumed run. Raises `RepeatError` unless it ended with the same bits."""
    if found.problem:
        line = f"nothing can be said of the stop: {found.problem}"
    elif found.holds:
        line = f"resumes bit for bit (went on at step {found.at} of {found.steps})"
    else:
        lost = f"loses {', '.join(found.lost)}" if found.lost else "loses a state that is not recorded"
        first = f"; {found.first} of step {found.first_at} differs first" if found.first else ""
        line = f"{lost} (went on at step {found.at} of {found.steps}){first}"
    if json_:
        emit({"line": line, "holds": found.holds, **asdict(found)})
    else:
        click.echo(line)
        if stopped.status != 0:
            table("", [("the second", status_text(stopped.status)), ("it said", stopped.last)])
    if not found.holds:
        raise RepeatError(f"the program {line}" if not found.problem else line)
