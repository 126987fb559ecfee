"""What is looked at before an engine is blamed for it; gzip is tested with the archive and the push."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from threading import Event

import pytest

from reprobuild.errors import ImageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.workers import WorkEndedError, end_with
from reprobuild.oci.blobs import refuse_damaged
from reprobuild.oci.recompress import blobs_of, inflated_size, packed
from reprobuild.oci.store import ImageStore
from support.small_root import small_image


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_a_damaged_layer_is_named(tmp_path: Path, harm: str) -> None:
    store = ImageStore(Host(Home(tmp_path), Console(quiet=True)))
    image = store.find(small_image(store.home))
    refuse_damaged(*blobs_of(store, image).values())
    blob, _ = store.layers(image.digest)[-1]
    blob.unlink()
    if harm == "changed":
        blob.write_bytes(b"x")
    with pytest.raises(ImageError, match=f"the image store is damaged: sha256:{blob.name}"):
        refuse_damaged(*blobs_of(store, image).values())


def test_layers_that_nobody_waits_for_are_not_compressed_to_their_end(tmp_path: Path) -> None:
    """Ctrl-C waits for threads: with 92 layers to compress it took 47 seconds."""
    store = ImageStore(Host(Home(tmp_path), Console(quiet=True)))
    image = store.find(small_image(store.home))
    blob, _ = store.layers(image.digest)[-1]

    def compress() -> None:
        with packed(store, image, "gzip"):
            pass

    def ended(work: Callable[[], object]) -> None:
        event = Event()
        end_with(event)
        work()
        event.set()
        with pytest.raises(WorkEndedError):
            work()

    for work in (compress, lambda: inflated_size(blob)):
        copy_context().run(ended, work)
    assert [*(store.home.root / "tmp").iterdir()] == []
