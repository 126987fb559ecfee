"""Layers that a daemon pulls from this machine: who gets what, and what Docker has afterwards."""

from __future__ import annotations

import hashlib
import http.client
import json
from contextlib import closing

import pytest

from reprobuild.engines.loopback_registry import offered
from reprobuild.errors import ImageError
from reprobuild.oci.store import Image, ImageStore
from support.loopback import damage, image_with

pytest_plugins = ["support.shared", "support.loopback"]


def diff_ids(images: ImageStore, image: Image) -> list[str]:
    return [diff_id for _, diff_id in images.layers(image.digest)]


# --- the offer ---


class Reader:
    """Asks an offer as a daemon does."""

    def __init__(self, reference: str) -> None:
        self.place, _, self.digest = reference.partition("@")
        self.host, _, self.repository = self.place.partition("/")

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection(self.host, timeout=20)) as connection:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def blob(self, digest: str, method: str = "GET") -> tuple[int, bytes]:
        return self.ask(f"/v2/{self.repository}/blobs/{digest}", method)

    def manifest(self) -> bytes:
        status, found = self.ask(f"/v2/{self.repository}/manifests/{self.digest}")
        assert status == 200
        return found


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_a_carrier_has_the_layers_of_the_image_and_runs_nothing(images: ImageStore) -> None:
    image = image_with(images, "one")
    with offered(images, image, known=0) as offer:
        reader = Reader(offer)
        content = reader.manifest()
        assert digest_of(content) == reader.digest
        manifest = json.loads(content)
        status, config = reader.blob(manifest["config"]["digest"])
        assert (status, digest_of(config)) == (200, manifest["config"]["digest"])
        assert json.loads(config)["rootfs"]["diff_ids"] == diff_ids(images, image)
        assert list(json.loads(config)["config"]) == ["Labels"]
        for layer in manifest["layers"]:
            status, tar = reader.blob(layer["digest"])
            assert (status, digest_of(tar), len(tar)) == (200, layer["digest"], layer["size"])


def test_no_other_can_be_asked_for(images: ImageStore) -> None:
    image = image_with(images, "one")
    layer = diff_ids(images, image)[0]
    with offered(images, image, known=0) as offer, offered(images, image, known=0) as other:
        reader = Reader(offer)
        assert reader.ask("/v2/") == (200, b"{}")
        assert reader.blob(layer, "HEAD") == (200, b"")
        for path in (
            f"/v2/{Reader(other).repository}/blobs/{layer}",
            f"/v2/x/blobs/{layer}",
            f"/v2/{reader.repository}/blobs/{image.digest}",
            f"/v2/{reader.repository}/blobs/../../../index.json",
            f"/v2/{reader.repository}/manifests/{image.digest}",
            "/v2/_catalog",
            "/",
        ):
            assert reader.ask(path) == (404, b"")
        for method in ("PUT", "POST", "DELETE"):
            assert reader.blob(layer, method)[0] == 501
    with pytest.raises(ConnectionRefusedError):
        reader.manifest()


def test_a_layer_that_the_daemon_has_is_refused(images: ImageStore) -> None:
    image = image_with(images, "one")
    below, *above = diff_ids(images, image)
    images.layers(image.digest)[0][0].unlink()  # nor is it read
    with offered(images, image, known=1) as offer:
        reader = Reader(offer)
        assert [layer["digest"] for layer in json.loads(reader.manifest())["layers"]] == [below, *above]
        assert reader.blob(below)[0] == 404
        assert reader.blob(above[0])[0] == 200


def test_a_damaged_layer_is_not_offered(images: ImageStore) -> None:
    image = image_with(images, "one")
    damage(images, image)
    with pytest.raises(ImageError, match="the image store is damaged"), offered(images, image, known=0):
        pytest.fail("it was offered")


# --- Docker takes it ---
