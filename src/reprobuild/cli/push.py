"""The command ``push``."""

from __future__ import annotations

from typing import get_args

import click

from ..engines.embedded import OciEngine
from ..host.console import size_text
from ..host.home import atomic_write, make_folders
from ..host.host import Host
from ..layers.registry_push import publish_layers
from ..lock.layer_record import LayerRecord
from ..lock.reader import parse_lock
from ..oci.recompress import Compression
from ..oci.store import Image, ImageStore
from ..registry.client import Target
from ..registry.push import push as push_image
from ..registry.pushed import remember_push
from ..render.labels import LABEL
from ..request.image_layout import OWN_FOLDER
from ..workspace import LAYERS, read_layers
from . import complete
from .options import force_option
from .output import as_json, emit, table


@click.command()
@click.argument("image", shell_complete=complete.images)
@click.argument("target", metavar="REGISTRY/NAME:TAG")
@force_option
@click.option(
    "--compression",
    type=click.Choice(get_args(Compression)),
    default="zstd",
    show_default=True,
    help="Compression of the layers; Docker before version 23 can pull gzip only.",
)
@click.option(
    "--record-layers", is_flag=True, help="Record the layers in envs/layers.json, for builds that fetch them."
)
@as_json
@click.pass_obj
def push(
    host: Host,
    image: str,
    target: str,
    *,
    force: bool,
    compression: Compression,
    record_layers: bool,
    json_: bool,
) -> None:
    """Push an image of the embedded store to a registry.

    What the registry already has is not sent again. Logins are those of `docker login` and `podman login`.
    With gzip the image has another digest there, and the same image ID and files.

    \b
    reprobuild push reprobuild/torch:2.4.1-cu121-py311 registry.example/team/torch:2.4.1
    """
    if record_layers and compression != "zstd":
        raise click.UsageError(
            "--record-layers records the layers as they were built, in zstd: leave out --compression"
        )
    place = Target.parse(target)
    store = OciEngine(host).images
    found = store.find(image)
    if compression == "zstd" and not any(host.home.folder("pushed").iterdir()):
        host.console.step(
            "layers are pushed in zstd, which Docker before 23 cannot pull; --compression gzip is for these"
        )
    done = push_image(store, found, place, host.console, force=force, compression=compression)
    if lock := found.labels.get(LABEL + "lock"):
        remember_push(host.home, lock, place, done.digest)
    if record_layers:
        _record(host, store, found, place)
    if json_:
        emit({"name": str(place), "digest": done.digest, "sent": done.sent, "there": done.there})
    else:
        rows = [("pushed", str(place)), ("digest", done.digest)]
        table("", [*rows, ("sent", f"{size_text(done.sent)}; {size_text(done.there)} already there")])


def _record(host: Host, store: ImageStore, image: Image, place: Target) -> None:
    """Write `envs/layers.json` with the layers of an image that has been pushed."""
    before = read_layers() if LAYERS.exists() else LayerRecord(images={}, layers={})
    path = f"{OWN_FOLDER}/pylock.toml"
    text = (store.file(image.digest, path.lstrip("/")) or b"").decode("utf-8", "replace")
    lock = parse_lock(text, f"{image.digest[:19]}: /{path.lstrip('/')}")
    record = publish_layers(lock, image, store, place, host, record=before)
    make_folders(LAYERS.parent)
    atomic_write(LAYERS, record.dump())
    host.console.step(f"wrote {LAYERS}; commit it beside the lock")
