"""The command ``render``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..errors import ImageError, RequestError, StorageError
from ..host.home import atomic_write, make_folders, storage_errors
from ..host.host import Host
from ..lock.model import Lock
from ..oci.registry.pushed import last_push
from ..pipeline.steps import lock_to_build, write_context, write_self_contained
from ..render.devcontainer import devcontainer as devcontainer_files
from ..render.dockerfile import CONDA_TAR, DEBIAN_TAR, PYTHON_TAR
from ..render.kubernetes import MOST_NODES, fleet_job
from . import complete
from .options import chosen_lock, request_flags
from .output import as_json, emit

_LAST_PUSH = "*"


@click.command()
@click.argument("source", required=False, metavar="[LOCK|ENV]", shell_complete=complete.locks)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder to write to.",
)
@click.option("--no-artifacts", is_flag=True, help="Write only the text files, not the wheels and packages.")
@click.option(
    "--self-contained",
    is_flag=True,
    help="Write one Dockerfile that needs no context; requires BuildKit 0.12.",
)
@click.option(
    "--kubernetes",
    metavar="IMAGE@DIGEST",
    help="Write a Kubernetes Job instead, which runs the self-test of a pushed image on each node.",
)
@click.option(
    "--devcontainer",
    is_flag=False,
    flag_value=_LAST_PUSH,
    metavar="[IMAGE@DIGEST]",
    help="Write DIR/.devcontainer/devcontainer.json instead, for editors that work in an image. "
    "[default: as it was last pushed from here]",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --devcontainer: a file of the CA certificates to trust inside the image.",
)
@click.option("--force", is_flag=True, help="With --devcontainer: replace a file that is there and differs.")
@click.option(
    "--nodes",
    type=click.IntRange(1, MOST_NODES),
    default=2,
    show_default=True,
    help="With --kubernetes: number of nodes.",
)
@request_flags
@as_json
@click.pass_obj
def render(
    host: Host,
    /,
    source: str | None,
    output: Path,
    *,
    no_artifacts: bool,
    self_contained: bool,
    kubernetes: str | None,
    devcontainer: str | None,
    ca: Path | None,
    force: bool,
    nodes: int,
    json_: bool,
    **flags: Any,
) -> None:
    """Write the Dockerfile of a lock, and everything that it copies.

    `docker build DIR` then needs no network. With --self-contained nothing is copied: the builder fetches
    each locked file from its address, and verifies its hash.

    \b
    reprobuild render --cuda 12.1 -o context && docker build -t torch context
    reprobuild render --cuda 12.1 -o . --self-contained && \\
        docker build -t torch - < Dockerfile
    reprobuild render --cuda 12.1 -o fleet --nodes 8 \\
        --kubernetes registry.example/team/torch@sha256:DIGEST
    reprobuild render --cuda 12.1 -o . \\
        --devcontainer registry.example/team/torch@sha256:DIGEST
    """
    if devcontainer is not None:
        if self_contained or no_artifacts or kubernetes is not None:
            raise click.UsageError("--devcontainer writes no Dockerfile; leave the other options out")
        lock = chosen_lock(source, flags, host)
        certificates = None if ca is None else _read(ca)
        beside = devcontainer_files(lock, _pushed(lock, devcontainer, host), certificates)
        _refuse_to_replace(beside, output, force=force)
        _write(beside, output, lock.digest, json_=json_)
        return
    if ca is not None or force:
        raise click.UsageError("--ca and --force are for --devcontainer")
    if kubernetes is not None:
        if self_contained or no_artifacts:
            raise click.UsageError("--kubernetes writes no Dockerfile; leave the other options out")
        lock = chosen_lock(source, flags, host)
        _write(fleet_job(lock, kubernetes, nodes), output, lock.digest, json_=json_)
        return
    if click.get_current_context().get_parameter_source("nodes") == ParameterSource.COMMANDLINE:
        raise click.UsageError("--nodes is for --kubernetes")
    if self_contained and no_artifacts:
        raise click.UsageError("--self-contained writes no artifacts; leave --no-artifacts out")
    found = lock_to_build(chosen_lock(source, flags, host), host)
    if self_contained:
        path = write_self_contained(found, output, host=host)
        if json_:
            emit({"directory": str(output), "lock": found.digest, "files": [path.name]})
        else:
            click.echo(f"{path}, which needs no context, of lock {found.digest[:19]}")
        return
    rendered = write_context(found, output, artifacts=not no_artifacts, host=host)
    files = [
        *rendered.files,
        *(
            []
            if no_artifacts
            else [a.path for a in rendered.artifacts]
            + [*([DEBIAN_TAR] if found.debian else []), *([CONDA_TAR] if found.conda else [])]
            + ([PYTHON_TAR] if found.standalone is not None else [])
        ),
    ]
    if json_:
        emit({"directory": str(output), "lock": found.digest, "files": sorted(files)})
    else:
        click.echo(
            f"{output}/Dockerfile and {len(files) - 1} files that it copies, of lock {found.digest[:19]}"
        )


def _pushed(lock: Lock, image: str, host: Host) -> str:
    """Return the image that ``--devcontainer`` names: the one last pushed, where it names none."""
    found = last_push(host.home, lock.digest) if image == _LAST_PUSH else image
    if found is None:
        raise ImageError(
            f"the image of lock {lock.digest[:19]} was not pushed from here",
            hint="push it first, or pass --devcontainer REGISTRY/NAME@DIGEST",
        )
    return found


def _read(certificates: Path) -> bytes:
    with storage_errors(certificates):
        content = certificates.read_bytes()
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise RequestError(f"--ca {certificates} is not a file of CA certificates: expected PEM")
    return content


def _refuse_to_replace(files: Mapping[str, bytes], output: Path, *, force: bool) -> None:
    """Raise `StorageError` where a file is there already and differs; a user may have edited it."""
    for name, content in files.items():
        path = output / name
        with storage_errors(path):
            if not force and path.exists() and path.read_bytes() != content:
                raise StorageError(
                    f"{path} exists and differs from what would be written",
                    hint="--force replaces it; to keep it, edit its line with the image",
                )


def _write(files: Mapping[str, bytes], output: Path, digest: str, *, json_: bool) -> None:
    make_folders(output)
    for name, content in files.items():
        make_folders((output / name).parent)
        atomic_write(output / name, content)
    if json_:
        emit({"directory": str(output), "lock": digest, "files": sorted(files)})
    else:
        click.echo(f"{' and '.join(str(output / name) for name in files)}, of lock {digest[:19]}")
