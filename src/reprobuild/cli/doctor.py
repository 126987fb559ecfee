"""The command ``doctor``."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import click

from ..engines.protocols import EngineName
from ..errors import EvidenceError, HostError, ImageError, RequestError
from ..host.console import size_text
from ..host.host import Host
from ..oci.registry.client import Target
from ..pipeline.preflight.doctor import Finding, examine, examine_for
from ..pipeline.preflight.image_needs import needs_of_labels
from ..pipeline.workspace import is_env, is_lock, read_env, read_lock
from ..render.labels import LABEL
from ..verify.evidence.policy import read_policy
from ..verify.find import find_image
from ..verify.image_labels import read_remote
from . import complete
from .output import as_json, emit, file_option, table

_WORDS = {True: "good", False: "BAD", None: "-"}


@click.command()
@click.argument("what", required=False, metavar="[LOCK|ENV|IMAGE]", shell_complete=complete.anything)
@file_option(
    "--require", "policy", text="With an image: also check whether its evidence meets this policy (TOML)."
)
@as_json
@click.pass_obj
def doctor(host: Host, what: str | None, *, policy: Path | None, json_: bool) -> None:
    """Check whether this machine can build and run images.

    With a lock, or its request, also whether disk, driver and GPUs will do for that image. With an image,
    whether this machine can run it: of an image in a registry only the labels are read, and no layers.
    Changes nothing. Exit status 7 if something is missing.

    \b
    reprobuild doctor envs/torch-cu121.toml
    reprobuild doctor registry.example/team/torch:2.4.1
    """
    if policy is not None and (what is None or is_lock(Path(what)) or is_env(what)):
        raise click.UsageError("--require asks for the evidence on an image: name one")
    found = examine(None, host) if what is None else _found(what, host)
    if policy is not None and what is not None:
        found = (*found, _evidence(what, policy, host))
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
    """Check this machine for a lock, or for an image here or in a registry."""
    if is_lock(Path(what)):
        return examine(read_lock(Path(what)), host)
    if is_env(what):
        return examine(read_lock(read_env(what).lock_file), host)
    if not re.search("[:/@]", what):
        raise RequestError(
            f"envs/{what}.toml: no such file",
            hint=f"if {what} is an image, name it with its tag: {what}:latest",
        )
    if _in_registry(what):
        remote = read_remote(Target.parse(what))
        pull = Finding("pull", good=None, text=f"{size_text(remote.size)} to fetch")
        return (pull, *examine_for(needs_of_labels(remote.labels, what), host))
    image = find_image(what, host).image
    if LABEL + "lock" not in image.labels:
        raise ImageError(
            f"{what} is not an image made by reprobuild: it has no label {LABEL}lock",
            hint="name an image that reprobuild made, or one that starts FROM such an image",
        )
    return examine_for(needs_of_labels(image.labels, what), host)


def _evidence(image: str, policy: Path, host: Host) -> Finding:
    """Return whether the evidence on an image meets a policy."""
    from ..verify.required import require  # noqa: PLC0415 -- keys take a tenth of a second to load

    read_policy(policy)  # one that cannot be read says nothing of the image
    try:
        require(image, policy, host)
    except EvidenceError as error:
        return Finding("evidence", good=False, text=error.message, hint=error.hint)
    return Finding("evidence", good=True, text=f"meets {policy}")


def _in_registry(what: str) -> bool:
    """Whether a name begins with a host, by Docker's rule: it has a dot or a port, or is localhost."""
    host, slash, _ = what.partition("/")
    return (
        bool(slash) and not host.startswith(_ENGINES) and ("." in host or ":" in host or host == "localhost")
    )


_ENGINES = tuple(f"{name}:" for name in get_args(EngineName))
