"""The command ``remove``."""

from __future__ import annotations

import click

from ..host.host import Host
from ..oci.store import ImageStore
from . import complete


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="IMAGE...", shell_complete=complete.images)
@click.pass_obj
def remove(host: Host, names: tuple[str, ...]) -> None:
    """Remove names of images.

    A digest removes the image with all its names. `reprobuild clean` then frees the space.

    \b
    reprobuild remove reprobuild/torch:2.4.1-cu121-py311
    """
    store = ImageStore(host)
    for name in names:
        digest = store.remove(name)
        click.echo(f"{name}: removed ({digest[:19]})")
