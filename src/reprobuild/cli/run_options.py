"""Options for running a program in an image, shared by ``run``, ``twice`` and ``diff --measure``."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..engines.cdi import GpuAccess
from ..engines.gpu import gpu_access
from ..engines.protocols import RunOptions
from ..errors import HostError
from ..host.console import Console
from ..host.home import kind_of
from ..host.limits import Limits, number, size
from ..host.sandbox import Bind
from ..net.index_settings import ca_bundle
from ..selftest.run import Gpu
from .output import file_option

if TYPE_CHECKING:
    from ..verify.find import EngineImage  # at run time it would make `run` slower to start

_OPTIONS = (
    click.option(
        "-e", "--env", "env", multiple=True, metavar="NAME[=VALUE]", help="Set a variable; may be repeated."
    ),
    click.option(
        "-v",
        "--volume",
        multiple=True,
        metavar="SRC:DST[:ro]",
        help="Bind a folder or file; may be repeated.",
    ),
    click.option("-w", "--workdir", metavar="DIR", help="Working directory in the image."),
    click.option(
        "-u",
        "--user",
        metavar="USER[:GROUP]",
        help="User and group in the image, as numbers or as its names. [default: the image's, else root]",
    ),
    click.option("-m", "--memory", metavar="SIZE", help="Memory limit, like 8G. [default: none]"),
    click.option(
        "--pids-limit",
        metavar="NUMBER",
        help="Limit of processes and threads. [default: 32768, or half of the machine's limit]",
    ),
    click.option("--no-network", is_flag=True, help="Run without network; by default the host's is shared."),
    click.option(
        "--gpu",
        type=click.Choice(["auto", "require", "off"]),
        default="auto",
        show_default=True,
        help="Whether to pass GPUs in: if available, always, or never.",
    ),
)


def in_image(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for running a command in an image; `settings` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings(
    console: Console,
    *,
    env: tuple[str, ...],
    volume: tuple[str, ...],
    workdir: str | None,
    user: str | None,
    memory: str | None,
    pids_limit: str | None,
    no_network: bool,
    gpu: Gpu,
    gpus: Callable[[], GpuAccess | str] | None = None,
) -> RunOptions:
    """Convert the options to `RunOptions`; ``gpus``: see `gpus_for`. Raises UsageError and `HostError`."""
    who = None if user is None else _user(user, console)
    certificates = None if no_network else _certificates()
    access = (gpus or gpu_access)() if gpu != "off" else "switched off"
    if gpu == "require" and isinstance(access, str):
        raise HostError(f"--gpu require: {access}", hint="leave --gpu out to run on the CPU")
    return RunOptions(
        env={
            **(dict.fromkeys(_CERTIFICATES, certificates.destination) if certificates else {}),
            **variables(env),
        },
        binds=[*([certificates] if certificates else []), *folders(volume)],
        network=not no_network,
        gpu=None if isinstance(access, str) else access,
        workdir=workdir,
        user=who,
        limits=_limits(memory, pids_limit),
    )


def gpus_for(kept: EngineImage) -> Callable[[], GpuAccess | str]:
    """Return what says whether the engine of an image can pass GPUs in: a daemon knows that itself."""
    if kept.engine.kind == "oci":
        return gpu_access
    return lambda: kept.engine.runner(kept.image.digest).gpu_missing() or GpuAccess()


receipt = file_option(
    "--receipt", text="Write what the run was made of and what came of it, for `reprobuild replay`."
)


def own_command(command: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return a command without its ``--``. Raises UsageError for an option in its place, and for no name."""
    if command[:1] == ("--",):
        command = command[1:]
    elif command and command[0].startswith("-"):
        raise click.UsageError(f"{command[0]} is after the image; options of `{name}` come before it")
    if command[:1] == ("",):
        raise click.UsageError("the command's first word is empty: expected a program, like python3")
    return command


_LEAST_MEMORY = 6 << 20
"""As `docker run` has it."""
_LEAST_PROCESSES = 4
"""Those that start the program, and the program."""


def _limits(memory: str | None, pids_limit: str | None) -> Limits:
    """Return the limits of ``-m`` and ``--pids-limit``. Raises UsageError and `HostError`."""
    found = Limits(
        memory=None if memory is None else size(memory, "--memory"),
        processes=None if pids_limit is None else number(pids_limit, "--pids-limit"),
    )
    if found.memory is not None and found.memory < _LEAST_MEMORY:
        raise click.UsageError(
            f"-m {memory}: no program starts in less than 6M of memory; a number alone is bytes:"
            " write it as 8G or 512M"
        )
    if found.processes is not None and found.processes < _LEAST_PROCESSES:
        raise click.UsageError(f"--pids-limit {pids_limit}: a run has at least {_LEAST_PROCESSES} processes")
    return found


def _user(text: str, console: Console) -> str:
    """Return the user of ``--user``. An ordinary user's own id means root inside the image."""
    found = re.fullmatch(r"([^:\s/]{1,64})(:[^:\s/]{1,64})?", text)
    if found is None:
        raise click.UsageError(f"--user {text!r}: expected USER[:GROUP], like 1000:1000 or nobody")
    if str(os.geteuid()) != found[1] or os.geteuid() == 0:
        return text
    console.step(f"root in the image is user {found[1]} of this machine, so --user {text} changes nothing")
    return "0:0"


_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def _certificates() -> Bind | None:
    """Return the CA certificates that this machine trusts, as a file in the image."""
    bundle = ca_bundle() or _SYSTEM_CERTIFICATES
    if not bundle.is_file():
        return None
    return Bind(source=bundle.resolve(), destination="/run/reprobuild/ca-certificates.crt")


def variables(env: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of ``-e``. Raises UsageError."""
    return {name: value for text in env for name, value in _variable(text).items()}


def folders(volume: tuple[str, ...]) -> list[Bind]:
    """Return the folders of ``-v``, one inside another after it, as Docker does. Raises UsageError."""
    binds: dict[str, Bind] = {}
    for bind in map(_bind, volume):
        if bind.destination in binds:
            raise click.UsageError(f"-v: {bind.destination} is given twice; only one of them could be seen")
        binds[bind.destination] = bind
    return sorted(binds.values(), key=lambda bind: len(Path(bind.destination).parts))


def _variable(text: str) -> dict[str, str]:
    """Return the variable that ``--env`` sets; a name alone takes its value from this environment."""
    name, given, value = text.partition("=")
    if not name:
        raise click.UsageError(f"-e {text!r}: expected NAME=VALUE, or NAME to pass on its value")
    if given:
        return {name: value}
    return {name: os.environ[name]} if name in os.environ else {}


def _bind(text: str) -> Bind:
    source, _, rest = text.partition(":")
    destination, _, mode = rest.partition(":")
    if not source or not destination.startswith("/") or mode not in ("", "ro", "rw"):
        raise click.UsageError(f"-v {text!r}: expected SRC:DST or SRC:DST:ro, with DST an absolute path")
    path = Path(source).absolute()
    if kind_of(path) is None:
        habit = "" if "/" in source else "; there are no named volumes: name a folder"
        raise click.UsageError(f"-v {text!r}: {source}: no such file or folder{habit}")
    place = "/" + posixpath.normpath(destination).lstrip("/")
    if place == "/":
        raise click.UsageError(f"-v {text!r}: DST is the image's root; bind a folder in it")
    return Bind(source=path, destination=place, writable=mode != "ro")
