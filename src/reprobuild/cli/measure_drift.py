"""``diff --measure``: operations whose results differ between the images of two locks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from ..engines.embedded import OciEngine
from ..errors import ImageError
from ..host.host import Host
from ..host.sandbox import Bind
from ..lock.model import Lock
from ..render.labels import LABEL
from ..render.own_files import own_files, selftest_files
from ..twice.cause_report import ulp_text
from ..twice.drift import Drift, Moved
from ..twice.recorded_run import HowToRun
from ..twice.runs import measure_drift
from .markdown import cell, code
from .output import columns, emit
from .run_options import settings

MOST_ROWS = 40
_PROGRAM = "/run/reprobuild/selftest"


def show_drift(
    host: Host,
    locks: Sequence[Lock],
    command: tuple[str, ...],
    options: Mapping[str, Any],
    *,
    json_: bool,
    markdown: bool,
) -> None:
    """Run a program in the images of two locks and print the changes. Raises `ImageError`."""
    engine, how = OciEngine(host), settings(host.console, **options)

    def scratch() -> AbstractContextManager[Path]:
        return host.home.scratch("measure")

    with host.home.scratch("selftest") as program:
        if not command:
            # One program for both images: the checks of two releases are not the same.
            for name, content in selftest_files().items():
                (program / name).write_bytes(content)
            how = replace(how, binds=[*how.binds, Bind(source=program, destination=_PROGRAM)])
            command = ("python3", f"{_PROGRAM}/selftest.py", "--device", "auto")
        old, new = (engine.recorded(_image(engine, lock), command, how) for lock in locks)
        found = measure_drift((old, new), HowToRun(), scratch, host.console.step)
    if json_:
        emit({"line": _line(found), **asdict(found)})
        return
    if markdown:
        click.echo(drift_as_markdown(found))
        return
    click.echo(_line(found))
    for kind in found.kinds:
        click.echo(f"also differs: {kind}")
    if found.moved:
        columns(("OPERATION", "WHERE", "TIMES", "ULP", ""), [_row(each) for each in found.moved[:MOST_ROWS]])
    if len(found.moved) > MOST_ROWS:
        click.echo(f"{len(found.moved) - MOST_ROWS} more; --json has all")


def drift_as_markdown(found: Drift) -> str:
    """Return what moved as Markdown, for a pull request."""
    line = _line(found)
    lines = ["#### Operations", "", f"{line[0].upper()}{line[1:]}."]
    lines += [f"Also differs: {cell(kind)}." for kind in found.kinds]
    if found.moved:
        lines += ["", "| Operation | Where | Times | ULP | |", "|---|---|---:|---:|---|"]
        rows = map(_row, found.moved[:MOST_ROWS])
        lines += [f"| {code(row[0])} | {code(row[1])} | {' | '.join(row[2:])} |" for row in rows]
    if len(found.moved) > MOST_ROWS:
        lines += ["", f"{len(found.moved) - MOST_ROWS} more."]
    return "\n".join(lines)


def _image(engine: OciEngine, lock: Lock) -> str:
    # A build puts in this reprobuild's own files, whatever the lock says of them.
    built = {lock.digest, replace(lock, own_files=own_files()).digest}
    for image in engine.images.images():
        if image.labels.get(LABEL + "lock") in built:
            return image.digest
    raise ImageError(
        f"no image of lock {lock.digest[:19]} ({lock.request.name}) is here, so nothing can be run in it",
        hint="`reprobuild image` with that lock builds it",
    )


def _line(found: Drift) -> str:
    itself = sum(1 for each in found.moved if each.by_itself)
    line = (
        f"{len(found.moved)} operations moved, {itself} of them by themselves"
        if found.moved
        else "no operation moved"
    )
    line += f" ({found.compared} calls compared"
    line += f"; {found.only[0]} only in the old image, {found.only[1]} only in the new one" * any(found.only)
    line += f"; {found.restless} left out, which are unstable even in the old image" * bool(found.restless)
    return f"{line}; there were more than are traced)" if found.cut else f"{line})"


def _row(moved: Moved) -> tuple[str, ...]:
    where = f"{moved.place}" + (f" ({moved.module})" if moved.module else "")
    direction = ", backward" if moved.backward else ""
    why = "moved itself" if moved.by_itself else "got other inputs"
    return moved.operation + direction, where, str(moved.times), ulp_text(moved.ulp) or "-", why
