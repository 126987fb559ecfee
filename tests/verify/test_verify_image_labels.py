"""What a registry says of an image, as a stranger's word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reprobuild.errors import ImageError, RegistryError
from reprobuild.host.machine import architecture
from reprobuild.oci.documents import IMAGE_TYPES, INDEX_TYPE, LIST_TYPES, MANIFEST_TYPE
from reprobuild.oci.registry.client import Registry, Target
from reprobuild.verify.image_labels import read_image_manifest
from support.fixtures import fixtures_of
from support.listings import digest_of, serve_listing

globals().update(fixtures_of("support.listings"))


@pytest.mark.parametrize(
    "index", [b'{"manifests": 3}', b'{"manifests": [{"digest": 3}]}', b'{"manifests": [4]}', b"[]"]
)
def test_a_list_of_platforms_is_a_stranger_s_word(index: bytes) -> None:
    with serve_listing() as listing:
        listing.blobs["1"] = index
        with pytest.raises(RegistryError, match="team/x"):
            read_image_manifest(Registry(Target(listing.host, "team/x", "1")), "1", "team/x")


ONE, TWO = b'{"layers": [], "config": {}}', b'{"layers": [], "config": {"size": 2}}'
LIST, ODD = b'{"manifests": []}', b'{"layers": [], "config": {}, "mediaType": "a/b"}'


def entry(image: bytes, **platform: str) -> dict[str, Any]:
    return {
        "digest": digest_of(image),
        "platform": {"os": "linux", "architecture": architecture(), **platform},
    }


def found(document: dict[str, Any]) -> tuple[bytes, tuple[str, ...]]:
    with serve_listing() as listing:
        listing.blobs |= {
            "1": json.dumps(document).encode(),
            **{digest_of(y): y for y in (ONE, TWO, LIST, ODD)},
        }
        return read_image_manifest(Registry(Target(listing.host, "team/x", "1")), "1", "team/x")


def test_the_platforms_that_are_not_read_are_named() -> None:
    others = [entry(TWO, architecture="s390x"), entry(TWO, os="unknown", architecture="unknown")]
    assert found({"manifests": [*others, entry(ONE)]}) == (ONE, ("linux/s390x",))
    assert found({"manifests": [entry(ONE), entry(ONE)]}) == (ONE, ())


@pytest.mark.parametrize("variant", [{}, {"variant": "v3"}])
def test_two_images_for_one_machine_are_refused(variant: dict[str, str]) -> None:
    """Docker and Podman take the first (image-spec, image-index.md) or the variant that suits them best."""
    with pytest.raises(ImageError, match=f"has 2 images for linux/{architecture()}"):
        found({"manifests": [entry(TWO, **variant), entry(ONE)]})


@pytest.mark.parametrize(
    "document",
    [
        {"manifests": [entry(ONE)], "layers": []},
        {"manifests": [entry(ONE)], "config": {}},
        {"Manifests": [entry(ONE)], "layers": [], "config": {}},
        {"manifests": [entry(ONE)], "mediaType": MANIFEST_TYPE},
        {"layers": [], "config": {}, "mediaType": INDEX_TYPE},
    ],
)
def test_what_is_an_image_and_a_list_of_images_is_refused(document: dict[str, Any]) -> None:
    """CVE-2021-41190: what a tool takes it for hangs on a header of the answer."""
    with pytest.raises(RegistryError, match="can be read as an image and as a list of images"):
        found(document)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (
            {"manifests": [entry(ONE)], "mediaType": "application/x"},
            "the mediaType 'application/x' is unknown",
        ),
        ({"layers": [], "config": {}, "mediaType": "text/html"}, "the mediaType 'text/html' is unknown"),
        ({"layers": [], "config": {}, "mediaType": 5}, "the mediaType 5 is unknown"),
        ({"layers": [], "config": {}, "schemaVersion": 1}, "the schemaVersion 1 is unknown"),
        ({"manifests": [entry(ONE)], "schemaVersion": "2"}, "the schemaVersion '2' is unknown"),
        ({"manifests": [{**entry(ONE), "mediaType": "a/b"}]}, "the mediaType 'a/b' is unknown"),
        (
            {"manifests": [{**entry(ONE), "mediaType": INDEX_TYPE}]},
            "is unknown: expected application/vnd.oci",
        ),
        ({"manifests": [{**entry(ONE), "platform": "linux"}]}, "platform"),
        ({"manifests": [{**entry(ONE), "platform": {"os": 3}}]}, "platform"),
        ({"manifests": [entry(LIST)]}, "is a list of images again"),
        ({"manifests": [entry(ODD)]}, "the mediaType 'a/b' is unknown"),
    ],
)
def test_a_document_of_an_unknown_type_is_refused(document: dict[str, Any], reason: str) -> None:
    """Tools go by the type: one that does not know it takes another entry of a list, or nothing."""
    with pytest.raises(RegistryError, match="team/x") as caught:
        found(document)
    assert reason in caught.value.message


def test_a_type_may_be_missing_or_docker_s() -> None:
    for each in (None, "", *LIST_TYPES):
        assert found({"manifests": [entry(ONE)], "mediaType": each, "schemaVersion": 2}) == (ONE, ())
    for kind in IMAGE_TYPES:
        assert found({"manifests": [{**entry(ONE), "mediaType": kind}]}) == (ONE, ())


def test_an_entry_without_a_platform_is_named() -> None:
    """containerd reads the configuration of one to see for which machine it is."""
    unnamed: list[dict[str, Any]] = [{}, {"platform": None}, {"platform": {}}]
    for platform in unnamed:
        bare = {"digest": digest_of(TWO), **platform}
        assert found({"manifests": [bare, entry(ONE)]}) == (ONE, ("no platform",))
        with pytest.raises(ImageError, match="it is for no platform"):
            found({"manifests": [bare]})


def test_an_architecture_by_its_other_name_is_the_same() -> None:
    other = {"amd64": "x86_64", "arm64": "aarch64"}[architecture()]
    assert found({"manifests": [entry(ONE, os="Linux", architecture=other)]}) == (ONE, ())
    with pytest.raises(ImageError, match=f"has 2 images for linux/{architecture()}"):
        found({"manifests": [entry(TWO, architecture=other), entry(ONE)]})
