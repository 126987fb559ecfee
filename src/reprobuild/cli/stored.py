"""The commands on the embedded store that read and name: ``images``, ``export``, ``remove``."""

from __future__ import annotations

from pathlib import Path

import click

from ..host.home import size_text
from ..host.host import Host
from ..layers.roots import MOST_BYTES, unpacked_sizes
from ..oci.archive import export as export_archive
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
@click.pass_obj
def export(host: Host, image: str, file: Path) -> None:
    """Write an image as an OCI archive.

    `podman load -i FILE` and `skopeo copy oci-archive:FILE` take it.

    \b
    reprobuild export reprobuild/torch:2.4.1-cu121-py311 torch.tar
    """
    store = ImageStore(host)
    found = store.find(image)
    name = image_name(image) if image_name_in(found, image) else (found.names or ("candidate:latest",))[0]
    export_archive(store, found, name, file)
    click.echo(f"{file}: {name}, {found.digest}, {size_text(file.stat().st_size)}")


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
