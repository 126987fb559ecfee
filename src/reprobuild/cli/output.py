"""Output of commands: tables and JSON, and the options for it. Imports nothing slow."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ..host.console import one_line, printable
from ..oci.store import Image
from ..request.table import DIGEST

F = TypeVar("F", bound=Callable[..., Any])

STACK = {"torch": "PyTorch", "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL", "numpy": "NumPy"}
"""The names of the parts of a lock's or an image's stack, in the order in which they are shown."""

as_json = click.option("--json", "json_", is_flag=True, help="Write the result as JSON.")

gpu = click.option(
    "--gpu",
    type=click.Choice(["auto", "require", "off"]),
    default="auto",
    show_default=True,
    help="Whether to test on the GPU: if available, always, or never.",
)


def file_option(*names: str, text: str) -> Callable[[F], F]:
    """Return an option that names a file."""
    return click.option(*names, type=click.Path(dir_okay=False, path_type=Path), help=text)


def image_facts(found: Image) -> dict[str, Any]:
    """Return an image of a store for JSON."""
    return {
        "names": list(found.names),
        "digest": found.digest,
        "size": found.size,
        "labels": dict(found.labels),
    }


def to_stderr(text: str) -> None:
    """Write a line to standard error, with control characters escaped."""
    click.echo(printable(text), err=True)


def emit(value: Any) -> None:
    """Write JSON to standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


_HASH = re.compile(rf"{DIGEST.pattern}|[0-9a-f]{{64}}")


def table(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Write a table of two columns to standard output; lines break between words only."""
    rows = list(rows)
    label = max((len(name) for name, _ in rows), default=0)
    width = min(shutil.get_terminal_size((80, 24)).columns, 100)
    lines = [title] if title else []
    for name, text in rows:
        row = textwrap.wrap(
            f"{name:<{label}}  {text}",
            width=max(width, label + 20),
            subsequent_indent=" " * (label + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
        # A hash that is alone on its line may begin below the label, where it fits then.
        lines += [
            line.strip().rjust(width) if len(line) > width and _HASH.fullmatch(line.strip(" ,")) else line
            for line in row
        ]
    click.echo("\n".join(lines))


def columns(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows below headings to standard output, without rules, for people and for ``awk``.

    On a terminal the widest column breaks between words where a row is too long; ``awk`` gets whole rows.
    """
    every = [headings, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    widest = widths.index(max(widths))
    excess = sum(widths) + 2 * (len(widths) - 1) - shutil.get_terminal_size((80, 24)).columns
    if sys.stdout.isatty() and excess > 0:
        longest = max(len(word) for row in every for word in row[widest].split(" "))
        widths[widest] = max(widths[widest] - excess, longest)
    for row in every:
        first, *more = _broken(row[widest], widths[widest])
        _write_row([*row[:widest], first, *row[widest + 1 :]], widths)
        for text in more:
            _write_row(["" if place != widest else text for place in range(len(row))], widths)


def _broken(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _write_row(cells: Sequence[str], widths: Sequence[int]) -> None:
    click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip())
