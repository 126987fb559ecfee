"""The commands on images: ``image``, ``images``, ``run``, ``export``, ``remove``, ``clean``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, get_args

import click

from ..engines.choice import Choice, choose
from ..engines.embedded import OciEngine
from ..engines.gpu import gpu_access
from ..errors import HostError
from ..host.console import Console
from ..host.home import size_text
from ..host.host import Host
from ..host.limits import Limits, number, size
from ..host.sandbox import Bind
from ..layers.clean import clean_home
from ..net.index_settings import ca_bundle
from ..oci.archive import export as export_archive
from ..oci.store import Image, image_name
from ..pipeline import make_image
from ..render.image_config import LABEL
from ..selftest.run import Gpu
from ..selftest.summary import summary
from .common import STACK, as_json, chosen_lock, columns, emit, gpu, request_flags, table


@click.command()
@click.argument("source", required=False, metavar="[LOCK|ENV]")
@click.option(
    "--tag", metavar="NAME", help="Name of the image. [default: like reprobuild/torch:2.4.1-cu121-py311]"
)
@click.option(
    "--engine",
    type=click.Choice(get_args(Choice)),
    default="oci",
    show_default=True,
    help="What builds, tests and keeps it; auto: the first that answers of Docker, Podman and oci.",
)
@click.option("--builder", metavar="NAME", help="Builder of docker buildx to build with.")
@gpu
@request_flags
@as_json
@click.pass_obj
def image(
    host: Host,
    /,
    source: str | None,
    *,
    tag: str | None,
    engine: Choice,
    builder: str | None,
    gpu: Gpu,
    json_: bool,
    **flags: Any,
) -> None:
    """Make an image: lock, fetch, build, self-test, name.

    ENV is a request in envs/, by its file or name; LOCK is a lock file; or flags say what to build. The lock
    is made if there is none. An image that fails its self-test gets no name.

    \b
    reprobuild image --cuda 12.1
    reprobuild image envs/frames.toml --tag team/frames:1
    reprobuild image --cuda 12.1 --engine docker
    """
    name = None if tag is None else image_name(tag)
    found = chosen_lock(source, flags, host)
    chosen = choose(engine, host, builder)
    made = make_image(found, name, gpu, host, engine=chosen)
    shown = chosen.images.find(made.digest)
    if json_:
        emit({**_facts(shown), "engine": chosen.kind, "name": made.name, "report": made.report.to_dict()})
        return
    rows = [("image", made.name), ("digest", made.digest), ("size", size_text(shown.size)), *_stack(shown)]
    rows += [("engine", chosen.kind)] if chosen.kind != "oci" else []
    table("", [*rows, *summary(made.report)])


@click.command()
@as_json
@click.pass_obj
def images(host: Host, *, json_: bool) -> None:
    """List the images.

    A candidate is an image without a name: one that did not pass its self-test, for example.

    \b
    reprobuild images --json
    """
    found = OciEngine(host).images.images()
    if json_:
        emit([_facts(each) for each in found])
        return
    if not found:
        host.console.step("no images; `reprobuild image --cuda 12.1` makes one")
        return
    columns(
        ("NAME", "DIGEST", "SIZE", "PYTORCH", "CUDA"),
        [
            (
                name,
                each.digest[7:19],
                size_text(each.size),
                each.labels.get(LABEL + "torch", "-"),
                each.labels.get(LABEL + "cuda", "-"),
            )
            for each in found
            for name in each.names or ("<candidate>",)
        ],
    )


# Options end at the image: what follows is the command's own, with or without "--" before it.
@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("image")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] [COMMAND]...")
@click.option(
    "-e", "--env", "env", multiple=True, metavar="NAME[=VALUE]", help="Set a variable; may be repeated."
)
@click.option(
    "-v", "--volume", multiple=True, metavar="SRC:DST[:ro]", help="Bind a folder or file; may be repeated."
)
@click.option("-w", "--workdir", metavar="DIR", help="Working directory in the image.")
@click.option(
    "-u", "--user", metavar="UID[:GID]", help="User and group in the image, as numbers. [default: root]"
)
@click.option("-i", "--interactive", is_flag=True, help="For habit: standard input is always passed in.")
@click.option("-t", "--tty", is_flag=True, help="Fail unless standard input and output are a terminal.")
@click.option("--rm", is_flag=True, help="For habit: nothing of a run is ever kept.")
@click.option("-m", "--memory", metavar="SIZE", help="Memory it may take, like 8G. [default: the machine's]")
@click.option(
    "--pids-limit",
    metavar="NUMBER",
    help="Processes and threads it may start. [default: 32768, or half the machine's]",
)
@click.option("--no-network", is_flag=True, help="Run without network; by default the host's is shared.")
@click.option(
    "--gpu",
    type=click.Choice(["auto", "require", "off"]),
    default="auto",
    show_default=True,
    help="Pass the GPUs in: if there are any, always, or never.",
)
@click.pass_obj
def run(
    host: Host,
    image: str,
    command: tuple[str, ...],
    *,
    env: tuple[str, ...],
    volume: tuple[str, ...],
    workdir: str | None,
    user: str | None,
    interactive: bool,  # noqa: ARG001 -- as it is always
    tty: bool,
    rm: bool,  # noqa: ARG001 -- as it is always
    memory: str | None,
    pids_limit: str | None,
    no_network: bool,
    gpu: Gpu,
) -> int:
    """Run a command in an image; without one, Python.

    Ends with the command's exit status. What the command writes outside volumes is lost afterwards. It gets
    signals such as Ctrl-C, and a terminal if there is one. With network it also gets this machine's CA
    certificates, in SSL_CERT_FILE, REQUESTS_CA_BUNDLE and PIP_CERT. Options come before the image.

    \b
    reprobuild run -v $PWD:/work -w /work reprobuild/torch:2.4.1-cu121-py311 -- python3 train.py
    """
    if command[:1] == ("--",):
        command = command[1:]
    elif command and command[0].startswith("-"):
        raise click.UsageError(f"{command[0]} is after the image; options of `run` come before it")
    if tty and not (os.isatty(0) and os.isatty(1)):
        raise click.UsageError("-t: standard input and output are not a terminal; leave -t out")
    ids = (0, 0) if user is None else _user(user, host.console)
    certificates = None if no_network else _certificates()
    access = gpu_access() if gpu != "off" else "switched off"
    if gpu == "require" and isinstance(access, str):
        raise HostError(f"--gpu require: {access}", hint="leave --gpu out to run on the CPU")
    status = OciEngine(host).run(
        image,
        command,
        env={
            **(dict.fromkeys(_CERTIFICATES, certificates.destination) if certificates else {}),
            **dict(_variable(text) for text in env),
        },
        binds=[*([certificates] if certificates else []), *(_bind(text) for text in volume)],
        network=not no_network,
        gpu=None if isinstance(access, str) else access,
        workdir=workdir,
        user=ids,
        limits=Limits(
            memory=None if memory is None else size(memory, "--memory"),
            processes=None if pids_limit is None else number(pids_limit, "--pids-limit"),
        ),
    )
    return status if status >= 0 else 128 - status


@click.command()
@click.argument("image")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def export(host: Host, image: str, file: Path) -> None:
    """Write an image as an OCI archive.

    `podman load -i FILE` and `skopeo copy oci-archive:FILE` take it.

    \b
    reprobuild export reprobuild/torch:2.4.1-cu121-py311 torch.tar
    """
    store = OciEngine(host).images
    found = store.find(image)
    name = image_name(image) if image_name_in(found, image) else (found.names or ("candidate:latest",))[0]
    export_archive(store, found, name, file)
    click.echo(f"{file}: {name}, {found.digest}, {size_text(file.stat().st_size)}")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="IMAGE...")
@click.pass_obj
def remove(host: Host, names: tuple[str, ...]) -> None:
    """Remove names of images.

    A digest removes the image with all its names. `reprobuild clean` then frees the space.

    \b
    reprobuild remove reprobuild/torch:2.4.1-cu121-py311
    """
    store = OciEngine(host).images
    for name in names:
        found = store.remove(name)
        click.echo(f"{name}: removed ({found.digest[:19]})")


@click.command()
@click.option("--all", "all_", is_flag=True, help="Remove all images too, and everything else.")
@as_json
@click.pass_obj
def clean(host: Host, *, all_: bool, json_: bool) -> None:
    """Free the space of what no image needs.

    That is candidates, and the layers, wheels and Debian packages that no named image consists of. Of layers
    unpacked for running, at most 30 GB stay in any case: those used longest ago go first.

    \b
    reprobuild clean
    """
    freed = clean_home(host, everything=all_)
    if json_:
        emit({"freed": freed, "home": str(host.home.root)})
    else:
        click.echo(f"{size_text(freed)} freed in {host.home.root}")


COMMANDS: tuple[click.Command, ...] = (image, images, run, export, remove, clean)


def image_name_in(found: Image, text: str) -> bool:
    """Whether the user named an image by one of its names, not by its digest."""
    return text in found.names or f"{text}:latest" in found.names


def _facts(found: Image) -> dict[str, Any]:
    return {
        "names": list(found.names),
        "digest": found.digest,
        "size": found.size,
        "labels": dict(found.labels),
    }


def _stack(found: Image) -> list[tuple[str, str]]:
    rows = [(title, found.labels[LABEL + key]) for key, title in STACK.items() if LABEL + key in found.labels]
    base = [("Python", "python"), ("Debian", "debian"), ("profile", "profile")]
    return rows + [(title, found.labels[LABEL + key]) for title, key in base]


def _user(text: str, console: Console) -> tuple[int, int]:
    """Return the ids of ``--user``. An ordinary user's own id means root inside, who is that user outside."""
    found = re.fullmatch(r"([0-9]{1,9})(?::([0-9]{1,9}))?", text)
    if found is None:
        raise click.UsageError(f"--user {text!r}: expected UID or UID:GID, as numbers, for example 1000:1000")
    ids = int(found[1]), int(found[2] or 0)
    if os.geteuid() != ids[0] or os.geteuid() == 0:
        return ids
    console.step(f"root in the image is user {ids[0]} of this machine, so --user {text} changes nothing")
    return 0, 0


_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def _certificates() -> Bind | None:
    """Return the CA certificates that this machine trusts, as a file in the image."""
    bundle = ca_bundle() or _SYSTEM_CERTIFICATES
    if not bundle.is_file():
        return None
    return Bind(source=bundle.resolve(), destination="/run/reprobuild/ca-certificates.crt")


def _variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not name:
        raise click.UsageError(f"-e {text!r}: expected NAME=VALUE, or NAME to pass on its value")
    return name, value if given else os.environ.get(name, "")


def _bind(text: str) -> Bind:
    source, _, rest = text.partition(":")
    destination, _, mode = rest.partition(":")
    if not destination.startswith("/") or mode not in ("", "ro", "rw"):
        raise click.UsageError(f"-v {text!r}: expected SRC:DST or SRC:DST:ro, with DST an absolute path")
    path = Path(source).absolute()
    if not path.exists():
        raise click.UsageError(f"-v {text!r}: {path}: no such file or folder")
    return Bind(source=path, destination=destination, writable=mode != "ro")
