"""The commands on the embedded store that read and name: ``images``, ``export``, ``remove``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import click

from ..host.home import size_text
from ..host.host import Host
from ..layers.roots import MOST_BYTES, unpacked_sizes
from ..oci.archive import export as export_archive
from ..oci.packed import Compression
from ..oci.squashfs import export_squashfs
from ..oci.store import Image, ImageStore, image_name
from ..render.labels import LABEL
from . import completing
from .output import as_json, columns, emit, image_facts


@click.command()
@as_json
@click.pass_obj
def images(host: Host, *, json_: bool) -> None:
    """List the images.

    A candidate is an image without a name: one that did not pass its self-test, for example. SIZE is
    compressed; UNPACKED is what its layers take that are unpacked for running, some of them for others too.

    \b
    reprobuild images --json
    """
    store = ImageStore(host)
    found, sizes = store.images(), unpacked_sizes(host.home)
    layers = {each.digest: {diff for _, diff in store.layers(each.digest)} for each in found}
    unpacked = {digest: sum(sizes.get(diff, 0) for diff in diffs) for digest, diffs in layers.items()}
    if json_:
        emit([{**image_facts(each), "unpacked": unpacked[each.digest]} for each in found])
        return
    if not found:
        host.console.step("no images; `reprobuild image --cuda 12.1` makes one")
        return
    columns(
        ("NAME", "DIGEST", "SIZE", "UNPACKED", "PYTORCH", "CUDA"),
        [
            (
                name,
                each.digest[7:19],
                size_text(each.size),
                size_text(unpacked[each.digest]) if unpacked[each.digest] else "-",
                each.labels.get(LABEL + "torch", "-"),
                each.labels.get(LABEL + "cuda", "-"),
            )
            for each in found
            for name in each.names or ("<candidate>",)
        ],
    )
    if total := sum(sizes.values()):
        host.console.step(
            f"layers unpacked for running take {size_text(total)}, shared by images; at most "
            f"{size_text(MOST_BYTES)} stay"
        )


@click.command()
@click.argument("image", shell_complete=completing.images)
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
    help="Of the layers in an OCI archive: gzip for tools that do not read zstd. [default: zstd]",
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

    The same image gives the same file.

    `podman load -i FILE` and `skopeo copy oci-archive:FILE` read an OCI archive, `apptainer build` too;
    `enroot create FILE` and `srun --container-image=FILE` (pyxis) a squashfs file.

    \b
    reprobuild export reprobuild/torch:2.4.1-cu121-py311 torch.tar
    reprobuild export reprobuild/torch:2.4.1-cu121-py311 torch.sqsh --format squashfs
    """
    if form == "squashfs" and compression is not None:
        raise click.UsageError("--compression is of the layers of an OCI archive; a squashfs file has none")
    store = ImageStore(host)
    found = store.find(image)
    name = image_name(image) if image_name_in(found, image) else (found.names or ("candidate:latest",))[0]
    digest = found.digest
    if form == "squashfs":
        export_squashfs(store, found, file)
    else:
        digest = export_archive(store, found, name, file, compression=compression or "zstd")
    click.echo(f"{file}: {name}, {digest}, {size_text(file.stat().st_size)}")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="IMAGE...", shell_complete=completing.images)
@click.pass_obj
def remove(host: Host, names: tuple[str, ...]) -> None:
    """Remove names of images.

    A digest removes the image with all its names. `reprobuild clean` then frees the space.

    \b
    reprobuild remove reprobuild/torch:2.4.1-cu121-py311
    """
    store = ImageStore(host)
    for name in names:
        found = store.remove(name)
        click.echo(f"{name}: removed ({found.digest[:19]})")


COMMANDS: tuple[click.Command, ...] = (images, export, remove)


def image_name_in(found: Image, text: str) -> bool:
    """Whether the user named an image by one of its names, not by its digest."""
    return text in found.names or f"{text}:latest" in found.names
