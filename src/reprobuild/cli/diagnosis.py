"""The command ``doctor``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ..doctor import examine
from ..errors import HostError
from ..workspace import read_env, read_lock
from .common import Settings, as_json, emit, table

_WORDS = {True: "good", False: "BAD", None: "-"}


@click.command()
@click.argument("lock", required=False, metavar="[LOCK|ENV]")
@as_json
@click.pass_obj
def doctor(settings: Settings, lock: str | None, *, json_: bool) -> None:
    """Look whether this machine can build and run images.

    With a lock, or the request of one, it looks at the disk and the driver for that image too. It downloads
    and changes nothing. Exit status 7 when something is missing.

    \b
    reprobuild doctor envs/torch-cu121.toml
    """
    wanted = None
    if lock is not None:
        is_lock = Path(lock).name.startswith("pylock.")
        wanted = read_lock(Path(lock) if is_lock else read_env(lock).lock_file)
    found = examine(wanted, settings.home)
    if json_:
        emit([asdict(each) for each in found])
    else:
        table("", [(each.name, f"{_WORDS[each.good]}: {each.text}") for each in found])
    bad = [each for each in found if each.good is False]
    if bad:
        raise HostError(
            f"this machine lacks something: {', '.join(each.name for each in bad)}",
            hint="; ".join(dict.fromkeys(each.hint for each in bad if each.hint)),
        )


COMMANDS: tuple[click.Command, ...] = (doctor,)
