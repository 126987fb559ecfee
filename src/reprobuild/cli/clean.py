"""The command ``clean``."""

from __future__ import annotations

import click

from ..host.console import size_text
from ..host.host import Host
from ..layers.clean import clean_home
from ..oci.store import ImageStore
from ..verify.evidence.document_store import forget_all_but
from .output import as_json, emit


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
    with host.home.lock("build", host.console):  # which would add an image, and then its evidence
        images = ImageStore(host)
        there = {*(each.digest for each in images.images()), *(bad.digest for bad in images.damaged_images())}
        total = freed.total + forget_all_but(host.home, there)
    if json_:
        emit({"freed": total, "unpacked": freed.unpacked, "home": str(host.home.root)})
    else:
        part = f", {size_text(freed.unpacked)} of it layers unpacked for running" if freed.unpacked else ""
        click.echo(f"{size_text(total)} freed in {host.home.root}{part}")
