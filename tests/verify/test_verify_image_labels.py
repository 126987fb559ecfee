"""What a registry says of an image, as a stranger's word."""

from __future__ import annotations

import pytest

from reprobuild.errors import RegistryError
from reprobuild.oci.registry.client import Registry, Target
from reprobuild.verify.image_labels import read_image_manifest
from support.fixtures import fixtures_of
from support.listings import serve_listing

globals().update(fixtures_of("support.listings"))


@pytest.mark.parametrize(
    "index", [b'{"manifests": 3}', b'{"manifests": [{"digest": 3}]}', b'{"manifests": [4]}', b"[]"]
)
def test_a_list_of_platforms_is_a_stranger_s_word(index: bytes) -> None:
    with serve_listing() as listing:
        listing.blobs["1"] = index
        with pytest.raises(RegistryError, match="team/x"):
            read_image_manifest(Registry(Target(listing.host, "team/x", "1")), "1", "team/x")
