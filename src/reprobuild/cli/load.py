"""The command ``load``."""

from __future__ import annotations

from typing import Literal

import click

from ..engines.embedded import OciEngine
from ..engines.select import taker
from ..engines.transfer import load as load_image
from ..host.host import Host
from ..oci.store import image_name, refuse_candidate
from ..verify.evidence.document_store import kept, mark_elsewhere
from . import complete
from .options import force_option


@click.command()
@click.argument("image", shell_complete=complete.images)
@click.option("--into", type=click.Choice(["docker", "podman"]), required=True, help="Engine to copy to.")
@click.option("--tag", metavar="NAME", help="Name in that engine. [default: the same name]")
@force_option
@click.pass_obj
def load(host: Host, image: str, *, into: Literal["docker", "podman"], tag: str | None, force: bool) -> None:
    """Copy an image of the embedded store into Docker or Podman.

    It keeps its digest there: that of its manifest, or in an older Docker and in Podman that of its
    configuration, which is the image ID.

    \b
    reprobuild load reprobuild/torch:2.4.1-cu121-py311 --into docker
    """
    store = OciEngine(host).images
    found = store.find(image)
    refuse_candidate(found)
    name = image_name(tag or (image if image in found.names else found.names[0]))
    engine = taker(into, host)
    digest = load_image(store, found, name, engine, force=force)
    if kept(host, found.digest):
        mark_elsewhere(host.home, found.digest)
        host.console.step(f"{into} keeps no evidence; that of this image stays here, and `verify` finds it")
    click.echo(f"{into}: {name}, {digest}")
