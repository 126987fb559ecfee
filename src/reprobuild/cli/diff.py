"""The command ``diff``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from click.core import ParameterSource

from ..host.host import Host
from ..lock.diff import MEANINGS, Change, diff_all
from ..lock.model import Lock
from ..lock.platforms import digest_of
from ..pipeline.workspace import lock_for
from . import complete
from .markdown import changes_as_markdown, more, sum_of
from .measure_drift import show_drift
from .options import locks_of, one_platform
from .output import as_json, columns, emit
from .run_options import in_image


@click.command()
@click.argument("old", metavar="OLD", shell_complete=complete.locks)
@click.argument("new", metavar="NEW", shell_complete=complete.locks)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--markdown", is_flag=True, help="Write the result as Markdown, for a pull request.")
@click.option(
    "--measure",
    is_flag=True,
    help="Run a program, or else the self-test's checks, in both images and show which operations moved.",
)
@in_image
@as_json
@click.pass_obj
def diff(
    host: Host,
    /,
    old: str,
    new: str,
    command: tuple[str, ...],
    *,
    markdown: bool,
    measure: bool,
    json_: bool,
    **options: Any,
) -> None:
    """Show what differs between two locks, and its likely effect.

    OLD and NEW are lock files, or requests, which stand for their locks. Each change can move numbers, can
    move behaviour, or cannot. With --measure, which operations of torch gave other numbers in the images of
    the two locks, at which line, and how far.

    \b
    git show main:envs/pylock.frames.toml > old.toml
    reprobuild diff old.toml envs/pylock.frames.toml
    reprobuild diff --measure -v $PWD:/work -w /work old.toml frames -- \\
        python3 train.py --steps 5
    """
    if markdown and json_:
        raise click.UsageError("--markdown excludes --json")
    before, after = locks_of(old), locks_of(new)
    if measure:
        locks = [lock_for(found, one_platform(()), name) for found, name in ((before, old), (after, new))]
        show_drift(host, locks, command, options, json_=json_, markdown=markdown)
        return
    source = click.get_current_context().get_parameter_source
    if command or any(source(name) == ParameterSource.COMMANDLINE for name in options):
        raise click.UsageError("a command and its options are for --measure")
    changes = diff_all(before, after)
    if json_:
        emit({"old": digest_of(before), "new": digest_of(after), "changes": [c.to_dict() for c in changes]})
    elif markdown:
        click.echo(changes_as_markdown(before, after, changes))
    else:
        _show(before, after, changes)


def _show(old: Sequence[Lock], new: Sequence[Lock], changes: Sequence[Change]) -> None:
    if not changes:
        same = digest_of(old) == digest_of(new)
        click.echo("the same" if same else "the digests differ, but all that diff compares is the same")
        return
    rows = [(MEANINGS[c.meaning], c.kind, c.name, c.old or "-", c.new or "-", more(c.size)) for c in changes]
    columns(("MEANING", "KIND", "NAME", "OLD", "NEW", "SIZE"), rows)
    click.echo("\n" + sum_of(changes))
