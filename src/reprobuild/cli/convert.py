"""The command ``convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import click

from ..host.home import atomic_write
from ..lock.conda_lock import write_conda_lock
from ..lock.exports import Form, export
from ..workspace import lock_for
from . import complete
from .options import locks_of, one_platform


@click.command()
@click.argument("lock", metavar="LOCK", shell_complete=complete.locks)
@click.option(
    "--to", "form", type=click.Choice([*get_args(Form), "conda-lock"]), required=True, help="Format to write."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Output file. [default: standard output]",
)
@click.option(
    "--platform",
    multiple=True,
    metavar="linux/ARCH",
    shell_complete=complete.platforms,
    help="Platform of the lock. [default: this machine's]",
)
def convert(
    lock: str, form: Form | Literal["conda-lock"], output: Path | None, platform: tuple[str, ...]
) -> None:
    """Write a lock in a form that other tools read.

    LOCK is a lock file, or a request, which stands for its lock. `requirements` is for pip, with a hash for
    every wheel; `explicit` names every file with its address and hash; `cyclonedx` is a bill of materials;
    `conda-lock` is a conda-lock.yml, for a lock with conda packages.

    \b
    reprobuild convert envs/pylock.frames.toml --to requirements -o requirements.txt
    """
    found = lock_for(locks_of(lock), one_platform(platform), lock)
    text = write_conda_lock(found) if form == "conda-lock" else export(found, form)
    if output is None:
        click.echo(text, nl=False)
    else:
        atomic_write(output, text.encode())
