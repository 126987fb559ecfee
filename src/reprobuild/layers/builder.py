"""Build all layers of a lock's image, reusing cached ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import BuildError
from ..fetch.arrivals import Arrivals
from ..fetch.store import DAMAGED, Store
from ..host.host import Host
from ..lock.layer_record import LayerRecord
from ..lock.model import Lock
from ..oci.tar_writer import LayerWriter, Record, parents, write_tar
from ..render.own_files import image_files
from .allowed_paths import refuse_own_names
from .cache import Cached, LayerCache
from .image_documents import file_manifest
from .image_user import write_user
from .layer_writing import Drafts
from .plan import plan, plan_digest
from .schedule import Schedule
from .system import SystemLayers

MANIFEST = "opt/reprobuild/manifest.tsv"


@dataclass(frozen=True, slots=True)
class BuiltLayer:
    """A layer of the image, with what to call it in the image's history."""

    title: str
    cached: Cached


def build_layers(
    lock: Lock,
    store: Store,
    host: Host,
    arrivals: Arrivals | None = None,
    *,
    lay_out: bool = False,
    record: LayerRecord | None = None,
) -> tuple[BuiltLayer, ...]:
    """Return the layers of a lock's image, lowest first.

    All that is locked must be in the store, or come there as ``arrivals`` tells. With ``lay_out`` the layers
    of wheels are also unpacked on the way, to run the image here. With a ``record``, what `take_layers`
    brought for it counts as made. Raises `BuildError`, `HostError`, `StorageError`, and `Stopped` when a file
    will not come; what was finished by then stays in the cache.
    """
    with host.home.scratch("layers") as scratch:
        drafts, asked = Drafts(host, scratch, record, read_soon=not lay_out), plan(lock)
        found = drafts.cache.known(plan_digest(asked))
        if found is None:
            schedule = Schedule(lock, store, host, drafts, arrivals or Arrivals(), lay_out=lay_out)
            try:
                plans, done = schedule.run()
            except BuildError:
                # Found by what reads it, not by its times: a bad disk, or it happened just now.
                if names := store.drop_damaged(lock.artifacts):
                    raise BuildError(
                        f"damaged in the store, and removed: {', '.join(names)}", hint=DAMAGED
                    ) from None
                raise
            found = [done[layer.key] for layer in plans]
            drafts.cache.remember(plan_digest(asked), [layer.key for layer in plans])
        layers = [BuiltLayer(layer.title, cached) for layer, cached in zip(asked, found, strict=True)]
        return (*layers, _own_layer(lock, layers, drafts))


@contextmanager
def _system(lock: Lock, store: Store, host: Host) -> Iterator[SystemLayers]:
    with host.home.scratch("layers") as scratch:
        yield SystemLayers(lock, store, host, Drafts(host, scratch))


def write_system_tar(
    lock: Lock, store: Store, host: Host, target: Path, kind: Literal["debian", "python"] = "debian"
) -> None:
    """Write the layer of Debian, or of a standalone Python, as a plain tar file, as a whole or not at all."""
    with _system(lock, store, host) as system:
        cached = system.of(kind)
    write_tar([LayerCache(host.home).blob(cached.layer.digest)], target, host.console)


def system_folders(lock: Lock, store: Store, host: Host) -> list[Path]:
    """Return the unpacked layers of a lock's system, lowest first, made where they are not in the cache.

    The system is Debian, or the base image with the Debian packages on top, and a standalone Python. Hold
    them with `unpacked_layers.in_use`.
    """
    with _system(lock, store, host) as system:
        return system.unpacked(system.layers())


def debian_records(lock: Lock, store: Store, host: Host) -> tuple[Record, ...]:
    """Return all paths of the Debian layer of a lock, made where it is not in the cache."""
    with _system(lock, store, host) as system:
        return system.of("debian").records


def write_conda_tar(lock: Lock, store: Store, host: Host, target: Path) -> None:
    """Write the linked conda packages of a lock, with their bytecode, as a plain tar file."""
    built = build_layers(lock, store, host)
    kinds = [layer.kind for layer in plan(lock)]
    wanted = [y.cached for y, kind in zip(built, kinds, strict=False) if kind in ("conda", "environment")]
    write_tar([LayerCache(host.home).blob(cached.layer.digest) for cached in wanted], target, host.console)


def _own_layer(lock: Lock, below: Sequence[BuiltLayer], drafts: Drafts) -> BuiltLayer:
    """Write reprobuild's own files; the manifest among them depends on all, so it is made each time."""
    for layer in below:
        refuse_own_names((record.path for record in layer.cached.records), layer.title)
    own = {path.lstrip("/"): content for path, content in image_files(lock).items()}
    with drafts.open("own") as out:
        writer = LayerWriter(out)
        for folder in parents([*own, MANIFEST]):
            writer.folder(folder)
        for path, (content, mode) in sorted(own.items()):
            writer.file(path, mode, len(content), [content])
        if lock.request.user is not None:
            write_user(lock.request.user, [layer.cached for layer in below], drafts.cache, writer)
        records = [record for layer in below for record in layer.cached.records] + writer.records
        manifest = file_manifest(records)
        writer.file(MANIFEST, 0o644, len(manifest), [manifest])
        return BuiltLayer("reprobuild's own files", drafts.put(f"own-{lock.digest[7:]}", out, writer))
