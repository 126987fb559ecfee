"""The command ``push``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from ..engines.embedded import OciEngine
from ..errors import EvidenceError
from ..host.console import size_text
from ..host.home import atomic_write, make_folders
from ..host.host import Host
from ..layers.registry_push import publish_layers
from ..lock.layer_record import LayerRecord
from ..lock.model import Lock
from ..lock.reader import parse_lock
from ..oci.recompress import Compression
from ..oci.registry.client import Target
from ..oci.registry.push import push as push_image
from ..oci.registry.pushed import remember_push
from ..oci.store import Image, ImageStore, refuse_candidate
from ..pipeline.workspace import LAYERS, read_layers
from ..render.labels import LABEL
from ..request.image_layout import OWN_FOLDER
from ..resolve.package_facts import facts_of_wheels
from ..verify.evidence.create_documents import document_image
from ..verify.evidence.statements import Subject
from . import complete
from .evidence_options import attachments, sign_options, signer_of
from .options import force_option
from .output import as_json, emit, table

if TYPE_CHECKING:
    from securesystemslib.signer import Signer

    from ..verify.evidence.keys import CommandSigner


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
@sign_options
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
    sign_key: Path | None,
    sign_command: str | None,
    sign_public: Path | None,
    json_: bool,
) -> None:
    """Push an image of the embedded store to a registry.

    What the registry already has is not sent again. Logins are those of `docker login` and `podman login`.
    Evidence that is kept about the image is attached to it there, signed with `--sign-key` or as `image` did;
    see `verify`. With gzip the image has another digest there, and the same image ID and files.

    \b
    reprobuild push reprobuild/torch:2.4.1-cu121-py311 \\
        registry.example/team/torch:2.4.1
    """
    if record_layers and compression != "zstd":
        raise click.UsageError(
            "--record-layers records the layers as they were built, in zstd: leave out --compression"
        )
    signer = signer_of(sign_key, sign_command, sign_public, host)
    place = Target.parse(target)
    store = OciEngine(host).images
    found = store.find(image)
    if compression == "zstd" and not any(host.home.folder("pushed").iterdir()):
        host.console.step(
            "layers are pushed in zstd, which Docker before 23 cannot pull; --compression gzip is for these"
        )
    done = push_image(
        store,
        found,
        place,
        host.console,
        force=force,
        compression=compression,
        attachments=lambda digest: attachments(_evidence(host, store, found, signer, digest)),
    )
    if lock := found.labels.get(LABEL + "lock"):
        remember_push(host.home, lock, place, done.digest)
    if record_layers:
        _record(host, store, found, place)
    if json_:
        emit({"name": str(place), "digest": done.digest, "sent": done.sent, "there": done.there})
    else:
        rows = [("pushed", str(place)), ("digest", done.digest)]
        table("", [*rows, ("sent", f"{size_text(done.sent)}; {size_text(done.there)} already there")])


def _evidence(
    host: Host, store: ImageStore, image: Image, signer: Signer | CommandSigner | None, pushed: str
) -> Mapping[str, bytes]:
    """Return the documents about an image; create those that are missing or need a signature."""
    refuse_candidate(image)
    lock, config = _lock(store, image), str(store.manifest(image.digest)["config"]["digest"])
    try:
        facts = facts_of_wheels(lock, host.home)
        subject = Subject(image.digest, config, "" if pushed == image.digest else pushed)
        return document_image(host, lock, subject, signer, facts)
    except EvidenceError:
        if signer is not None:
            raise
        host.console.warn("no report of a self-test is kept for this image, so no evidence is attached")
        return {}


def _lock(store: ImageStore, image: Image) -> Lock:
    path = f"{OWN_FOLDER}/pylock.toml"
    text = (store.file(image.digest, path.lstrip("/")) or b"").decode("utf-8", "replace")
    return parse_lock(text, f"{image.digest[:19]}: /{path.lstrip('/')}")


def _record(host: Host, store: ImageStore, image: Image, place: Target) -> None:
    """Write `envs/layers.json` with the layers of an image that has been pushed."""
    before = read_layers() if LAYERS.exists() else LayerRecord(images={}, layers={})
    lock = _lock(store, image)
    record = publish_layers(lock, image, store, place, host, record=before)
    make_folders(LAYERS.parent)
    atomic_write(LAYERS, record.dump())
    host.console.step(f"wrote {LAYERS}; commit it beside the lock")
