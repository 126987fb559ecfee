"""What is looked at before an engine is blamed for it; gzip is tested with the archive and the push."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import ImageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.blobs import refuse_damaged
from reprobuild.oci.recompress import blobs_of
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
