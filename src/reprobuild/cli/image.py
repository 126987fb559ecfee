"""The command ``image``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click

from ..bundle.read import locks_named, read_head, take
from ..engines.select import Choice, choose, maker
from ..host.console import size_text
from ..host.home import kind_of
from ..host.host import Host
from ..lock.model import Lock
from ..oci.registry.client import Target
from ..oci.store import Image, image_name
from ..pipeline.steps import SharedLayers, make_image
from ..pipeline.workspace import lock_for, read_layers
from ..render.labels import LABEL
from ..selftest.run import Gpu
from ..selftest.summary import summary
from . import complete
from .evidence_options import sign_options, signer_of
from .options import chosen_lock, locks_of, one_platform, request_flags
from .output import STACK, as_json, emit, file_option, gpu, image_facts, table


@click.command()
@click.argument("source", required=False, metavar="[LOCK|ENV]", shell_complete=complete.locks)
@click.option(
    "--tag", metavar="NAME", help="Name of the image. [default: like reprobuild/torch:2.4.1-cu121-py311]"
)
@click.option(
    "--engine",
    type=click.Choice(get_args(Choice)),
    default="oci",
    show_default=True,
    help="Engine that tests and stores the image; auto: the first available of Docker, Podman and oci.",
)
@click.option(
    "--independent",
    is_flag=True,
    help="Build from the Dockerfile, by Docker or Podman. [default: use the embedded engine's layers]",
)
@click.option(
    "--layers-from",
    metavar="REGISTRY/NAME",
    help="Download the layers recorded in envs/layers.json from here instead of building them.",
)
@file_option(
    "--bundle", "bundle_", text="Take everything from this bundle, a lock in it included; use no network."
)
@click.option("--builder", metavar="NAME", help="Builder of docker buildx; implies --independent.")
@sign_options
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
    independent: bool,
    layers_from: str | None,
    bundle_: Path | None,
    builder: str | None,
    sign_key: Path | None,
    sign_command: str | None,
    sign_public: Path | None,
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
    reprobuild image --cuda 12.1 --engine podman --independent
    reprobuild image --cuda 12.1 --layers-from registry.example/team/torch
    reprobuild image --bundle team.bundle.tar frames
    """
    name = None if tag is None else image_name(tag)
    independent = independent or builder is not None
    if independent and layers_from is not None:
        raise click.UsageError("--layers-from: an independent build makes its layers from the Dockerfile")
    if bundle_ is not None and layers_from is not None:
        raise click.UsageError("--bundle has everything that is needed: leave --layers-from out")
    # A wrong passphrase is found before the work.
    signer = signer_of(sign_key, sign_command, sign_public, host)
    source_of_layers = None if layers_from is None else Target.parse_repository(layers_from)
    found = chosen_lock(source, flags, host) if bundle_ is None else _bundled(bundle_, source, flags, host)
    shared = None if source_of_layers is None else SharedLayers(source_of_layers, read_layers())
    record = None if shared is None else shared.record
    chosen = maker(choose(engine, host, builder), host, independent=independent, record=record)
    made = make_image(found, name, gpu, host, engine=chosen, shared=shared, signer=signer)
    shown = chosen.images.find(made.digest)
    if json_:
        engines = {"engine": chosen.kind, "built_by": chosen.built_by}
        emit({**image_facts(shown), **engines, "name": made.name, "report": made.report.to_dict()})
        return
    rows = [
        ("image", made.name),
        ("digest", made.digest),
        ("lock", found.digest),
        ("size", size_text(shown.size)),
        *_stack(shown),
    ]
    if chosen.kind != "oci":
        how = "from the Dockerfile, by itself" if independent else "by the embedded engine, and handed over"
        rows += [("engine", chosen.kind), ("built", how)]
    table("", [*rows, *summary(made.report, power=host.console.verbose)])


def _bundled(file: Path, source: str | None, flags: Mapping[str, Any], host: Host) -> Lock:
    """Return the lock that the user names, with all its files from a bundle in the store.

    ``source`` is a lock of the bundle, or a lock or request here, by its path.
    """
    if given := [key for key, value in flags.items() if value and key != "platform"]:
        raise click.UsageError(f"--bundle has locks in it: leave --{given[0].replace('_', '-')} out")
    head = read_head(file)
    if source is not None and kind_of(source) == "file":
        locks, where = locks_of(source), source
    else:
        locks, where = locks_named(head, source), str(file)
    found = lock_for(locks, one_platform(flags.get("platform") or ()), where)
    with host.home.lock("build", host.console):
        take(head, [found], host)
    return found


def _stack(found: Image) -> list[tuple[str, str]]:
    rows = [(title, found.labels[LABEL + key]) for key, title in STACK.items() if LABEL + key in found.labels]
    base = [("Python", "python"), ("Debian", "debian"), ("profile", "profile")]
    return rows + [(title, found.labels[LABEL + key]) for title, key in base]
