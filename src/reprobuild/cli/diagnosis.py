"""The command ``doctor``."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import click

from ..engines.protocols import EngineName
from ..errors import HostError, ImageError
from ..host.home import size_text
from ..host.host import Host
from ..preflight.doctor import Finding, examine, examine_for
from ..preflight.requirements import needs_of_labels
from ..registry.client import Target
from ..registry.labels import read_remote
from ..render.image_config import LABEL
from ..verify.find import find_image
from ..workspace import is_env, read_env, read_lock
from .common import as_json, emit, table

_WORDS = {True: "good", False: "BAD", None: "-"}


@click.command()
@click.argument("what", required=False, metavar="[LOCK|ENV|IMAGE]")
@as_json
@click.pass_obj
def doctor(host: Host, what: str | None, *, json_: bool) -> None:
    """Look whether this machine can build and run images.

    With a lock, or the request of one, it looks at the disk, the driver and the GPUs for that image too. With
    an image, whether this machine can run it: of one in a registry it reads what the image says of itself,
    and none of its layers. It changes nothing. Exit status 7 when something is missing.

    \b
    reprobuild doctor envs/torch-cu121.toml
    reprobuild doctor registry.example/team/torch:2.4.1
    """
    found = examine(None, host) if what is None else _found(what, host)
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


def _found(what: str, host: Host) -> tuple[Finding, ...]:
    """Look at this machine for what is meant: a lock, or an image here or in a registry."""
    if Path(what).name.startswith("pylock."):
        return examine(read_lock(Path(what)), host)
    if is_env(what) or not re.search("[:/@]", what):
        return examine(read_lock(read_env(what).lock_file), host)
    if _in_registry(what):
        remote = read_remote(Target.parse(what))
        pull = Finding("pull", good=None, text=f"{size_text(remote.size)} to fetch")
        return (pull, *examine_for(needs_of_labels(remote.labels, what), host))
    image = find_image(what, host).image
    if LABEL + "lock" not in image.labels:
        raise ImageError(
            f"{what} is no image of reprobuild's: it has no label {LABEL}lock",
            hint="name one that reprobuild made, or one that starts FROM it",
        )
    return examine_for(needs_of_labels(image.labels, what), host)


def _in_registry(what: str) -> bool:
    """Whether a name begins with a host, as Docker tells it: by a dot or a port, or localhost."""
    host, slash, _ = what.partition("/")
    return (
        bool(slash) and not host.startswith(_ENGINES) and ("." in host or ":" in host or host == "localhost")
    )


_ENGINES = tuple(f"{name}:" for name in get_args(EngineName))

COMMANDS: tuple[click.Command, ...] = (doctor,)
