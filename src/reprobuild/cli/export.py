"""The command ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import click

from ..host.console import size_text
from ..host.home import atomic_write
from ..host.host import Host
from ..oci.archive import export as export_archive
from ..oci.recompress import Compression
from ..oci.squashfs import export_squashfs
from ..oci.store import Image, ImageStore, image_name
from ..verify.evidence.document_store import as_lines, kept
from ..verify.find_evidence import SUFFIX
from . import complete


@click.command()
@click.argument("image", shell_complete=complete.images)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["oci", "squashfs"]),
    default="oci",
    show_default=True,
    help="An OCI archive, or a file that enroot mounts.",
)
@click.option(
    "--compression",
    type=click.Choice(get_args(Compression)),
    help="Compression of the layers; gzip for tools that do not support zstd. [default: zstd]",
)
@click.pass_obj
def export(
    host: Host,
    image: str,
    file: Path,
    *,
    form: Literal["oci", "squashfs"],
    compression: Compression | None,
) -> None:
    """Write an image to a file.

    The same image gives the same file. What is kept as evidence about it is written beside an OCI archive, to
    FILE.evidence.jsonl, where `verify FILE` finds it: tools that load an archive expect nothing else in it.

    `podman load -i FILE` and `skopeo copy oci-archive:FILE` read an OCI archive, `apptainer build` too;
    `enroot create FILE` and `srun --container-image=FILE` (pyxis) a squashfs file.

    \b
    reprobuild export reprobuild/torch:2.4.1-cu121-py311 torch.tar
    reprobuild export reprobuild/torch:2.4.1-cu121-py311 torch.sqsh \\
        --format squashfs
    """
    if form == "squashfs" and compression is not None:
        raise click.UsageError("--compression is of the layers of an OCI archive; a squashfs file has none")
    store = ImageStore(host)
    found = store.find(image)
    name = image_name(image) if image_name_in(found, image) else (found.names or ("candidate:latest",))[0]
    digest = found.digest
    host.console.step(f"writing {file}")
    if form == "squashfs":
        export_squashfs(store, found, file)
    else:
        digest = export_archive(store, found, name, file, compression=compression or "zstd")
        if documents := kept(host, found.digest):
            atomic_write(file.with_name(file.name + SUFFIX), as_lines(documents))
    click.echo(f"{file}: {name}, {digest}, {size_text(file.stat().st_size)}")


def image_name_in(found: Image, text: str) -> bool:
    """Whether the user named an image by one of its names, not by its digest."""
    return text in found.names or f"{text}:latest" in found.names
