"""Output of commands: tables and JSON, and the options for it. Imports nothing slow."""

from __future__ import annotations

import json
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
        # A digest that is alone on its line may begin below the label, where it fits then.
        lines += [
            line.strip().rjust(width) if len(line) > width and DIGEST.fullmatch(line.strip(" ,")) else line
            for line in row
        ]
    click.echo("\n".join(lines))


def columns(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows below headings to standard output, without rules, for people and for ``awk``."""
    every = [headings, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    for row in every:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
