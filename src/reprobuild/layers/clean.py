"""Free the space of everything that no named image needs."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass

from ..errors import StorageError
from ..fetch.store import Store
from ..host.console import size_text
from ..host.home import Home, put_off, storage_errors
from ..host.host import Host
from ..host.os_reasons import FULL
from ..host.verified import read_sealed
from ..oci.store import ImageStore
from . import unpacked_layers
from .cache import LayerCache


@dataclass(frozen=True, slots=True)
class Freed:
    """Bytes."""

    total: int
    unpacked: int
    """How many of them were layers unpacked for running."""


def clean_home(host: Host, *, everything: bool) -> Freed:
    """Remove candidates and damaged images, and what no other image needs; return what that freed.

    Unpacked layers in use by a run stay. ``everything``: also the named images, and all else. Waits for a
    build that goes on, of an image or for a lock. Raises `StorageError`, for what cannot be removed once all
    else is.
    """
    failures: list[StorageError] = []
    with host.home.lock("build", host.console), ExitStack() as stack:
        try:
            stack.enter_context(host.home.lock("sources", host.console))
        except StorageError as error:
            # A full disk takes no new file: where there is none, no lock builds.
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in FULL:
                raise
        # At first what takes no write: the disk may be full.
        store = Store(host.home)
        freed = store.remove_partials(failures)
        host.home.sweep()
        images = ImageStore(host)
        if everything:
            images.reset()
        kept = [image for image in images.images() if image.names or image.recovered]
        wanted = {diff for image in kept for _, diff in images.layers(image.digest)}
        unpacked = unpacked_layers.remove_unused(host.home, wanted, failures)
        if not everything:
            for bad in images.damaged_images():
                if bad.unreadable:
                    continue  # that may pass; what it needs is not known, so no blob goes
                host.console.warn(f"{', '.join(bad.names) or 'a candidate'} is removed: {bad.reason}")
                images.remove(bad.digest)
            images.drop_unnamed()
        needed, layers = LayerCache(host.home).forget_all_but(images.used_blobs(), failures)
        freed += unpacked + layers + images.drop_blobs(failures)
        for sha256, size in store.sizes().items():
            if sha256 not in needed:
                with put_off(failures):
                    store.remove(sha256)
                    freed += size
        _forget_built(host.home, needed, failures)
        host.home.sweep(failures)  # unpacked layers were moved there to be removed
    if failures:
        more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
        raise StorageError(
            f"{failures[0].message}{more}; all else was removed, {size_text(freed)}", hint=failures[0].hint
        )
    return Freed(freed, unpacked)


def _forget_built(home: Home, needed: Collection[str], failures: list[StorageError]) -> None:
    """Remove build records that are damaged, or whose wheels are gone (see sources/workshop.py)."""
    for record in sorted((home.root / "built").glob("*.json")):
        with put_off(failures), storage_errors(record):
            content = read_sealed(record)
            if not content or json.loads(content)[1] not in needed:
                record.unlink()
