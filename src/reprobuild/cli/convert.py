"""The command ``convert``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import click

from ..host.home import atomic_write
from ..host.host import Host
from ..lock.bill import Facts
from ..lock.conda_lock import write_conda_lock
from ..lock.exports import Form, export
from ..lock.model import Lock
from ..pipeline.workspace import lock_for
from ..resolve.package_facts import facts_of
from . import complete
from .options import locks_of, one_platform
from .output import file_option


@click.command()
@click.argument("lock", metavar="LOCK", shell_complete=complete.locks)
@click.option(
    "--to", "form", type=click.Choice([*get_args(Form), "conda-lock"]), required=True, help="Format to write."
)
@file_option("-o", "--output", text="Output file. [default: standard output]")
@click.option(
    "--platform",
    multiple=True,
    metavar="linux/ARCH",
    shell_complete=complete.platforms,
    help="Platform of the lock. [default: this machine's]",
)
@click.pass_obj
def convert(
    host: Host,
    lock: str,
    form: Form | Literal["conda-lock"],
    output: Path | None,
    platform: tuple[str, ...],
) -> None:
    """Write a lock in a form that other tools read.

    LOCK is a lock file, or a request, which stands for its lock. `requirements` is for pip, with a hash for
    every wheel; `explicit` names every file with its address and hash; `cyclonedx` is a bill of materials;
    `conda-lock` is a conda-lock.yml, for a lock with conda packages.

    \b
    reprobuild convert envs/pylock.frames.toml --to requirements \\
        -o requirements.txt
    """
    found = lock_for(locks_of(lock), one_platform(platform), lock)
    if form == "conda-lock":
        text = write_conda_lock(found)
    else:
        text = export(found, form, _facts(found, host) if form == "cyclonedx" else None)
    if output is None:
        click.echo(text, nl=False)
    else:
        atomic_write(output, text.encode())


def _facts(lock: Lock, host: Host) -> Mapping[str, Facts]:
    """Return facts from the packages' files in the store; warn of missing ones."""
    facts = facts_of(lock, host.home)
    files = {p.wheel.sha256: p.name for p in lock.python} | {p.sha256: p.name for p in lock.debian}
    missing = [name for sha256, name in files.items() if sha256 not in facts]
    if missing:
        named = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        host.console.warn(
            f"no licenses and dependencies of {len(missing)} packages ({named}): their files are not here;"
            " `reprobuild image` fetches them"
        )
    return facts
