"""Layers that a daemon pulls from this machine: who gets what, and what Docker has afterwards."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reprobuild.engines import carrier
from reprobuild.engines.carrier import CARRIER, Offer, offered
from reprobuild.engines.docker import DockerEngine
from reprobuild.engines.transfer import send
from reprobuild.errors import ImageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.store import Image, ImageStore
from support.engines import Site, new_docker, old_docker
from support.locks import LOCK
from support.small_root import small_image

pytest_plugins = ["support.shared"]


@pytest.fixture
def images(tmp_path: Path) -> ImageStore:
    return ImageStore(Host(Home(tmp_path / "home"), Console(quiet=True)))


def image_with(images: ImageStore, text: str) -> Image:
    """An image whose uppermost layer alone depends on the text."""
    return images.find(small_image(images.home, LOCK, **{"etc/which": text.encode()}))


def diff_ids(images: ImageStore, image: Image) -> list[str]:
    return [diff_id for _, diff_id in images.layers(image.digest)]


# --- the offer ---


class Reader:
    """Asks an offer as a daemon does."""

    def __init__(self, offer: Offer) -> None:
        self.place, _, self.digest = offer.reference.partition("@")
        self.host, _, self.repository = self.place.partition("/")

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, timeout=20)
        connection.request(method, path)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

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
        assert offer.sent == set(diff_ids(images, image))


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
        assert offer.sent == set()
    with pytest.raises(ConnectionRefusedError):
        reader.manifest()


def test_a_layer_that_the_daemon_has_is_refused(images: ImageStore) -> None:
    image = image_with(images, "one")
    below, *above = diff_ids(images, image)
    with offered(images, image, known=1) as offer:
        reader = Reader(offer)
        assert [layer["digest"] for layer in json.loads(reader.manifest())["layers"]] == [below, *above]
        assert reader.blob(below)[0] == 404
        assert reader.blob(above[0])[0] == 200


def test_a_damaged_layer_is_not_offered(images: ImageStore) -> None:
    image = image_with(images, "one")
    blob, _ = images.layers(image.digest)[0]
    data = bytearray(blob.read_bytes())
    data[-5] ^= 1
    blob.unlink()
    blob.write_bytes(data)
    with pytest.raises(ImageError, match="the image store is damaged"), offered(images, image, known=0):
        pytest.fail("it was offered")


# --- Docker takes it ---


@pytest.fixture(scope="module", params=["20.10", "26.1"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Both with the older store."""
    folder = tmp_path_factory.mktemp("docker") / "site"
    if request.param == "20.10":
        with old_docker(folder) as site:
            yield site
    else:
        folder.mkdir()
        root = request.getfixturevalue("debian13")
        with new_docker(folder, root, containerd=False) as site:
            yield site


@pytest.fixture
def engine(site: Site, images: ImageStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerEngine]:
    for name, value in site.env.items():
        monkeypatch.setenv(name, value)
    yield DockerEngine(Host(images.home, Console(quiet=True)))
    site.call("system", "prune", "--all", "--force")


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> list[Offer]:
    """What is offered while the test runs."""
    found: list[Offer] = []

    @contextmanager
    def kept(images: ImageStore, image: Image, *, known: int) -> Iterator[Offer]:
        with offered(images, image, known=known) as offer:
            found.append(offer)
            yield offer

    monkeypatch.setattr(carrier, "offered", kept)
    return found


def holds(site: Site, digest: str, text: str) -> None:
    """Assert that Docker has that image alone, and that its files are there."""
    assert site.call("images", "--all", "--quiet", "--no-trunc").split() == [digest]
    assert site.call("run", "--rm", "--network", "none", digest, "cat", "/etc/which") == text


@pytest.mark.engines
def test_docker_pulls_the_layers_that_it_lacks(
    site: Site, engine: DockerEngine, images: ImageStore, offers: list[Offer]
) -> None:
    one, two = (image_with(images, text) for text in ("one", "two"))
    digest = send(images, one, engine)
    assert digest == images.manifest(one.digest)["config"]["digest"]
    assert offers[0].sent == set(diff_ids(images, one))
    holds(site, digest, "one")
    other = send(images, two, engine)
    assert offers[1].sent == set(diff_ids(images, two)) - set(diff_ids(images, one))
    site.call("rmi", digest)
    holds(site, other, "two")


@pytest.mark.engines
@pytest.mark.parametrize("why", ["known from an archive", "unreachable"])
def test_otherwise_an_archive_does(
    site: Site,
    engine: DockerEngine,
    images: ImageStore,
    offers: list[Offer],
    monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:
    """Layers that came in an archive are not known by a digest of a registry's, so Docker asks for them."""
    one, two = (image_with(images, f"{why} {number}") for number in range(2))
    if why == "unreachable":
        monkeypatch.setattr(carrier, "offered", lambda *_, **__: _nowhere())
    else:
        with monkeypatch.context() as patch:
            patch.setattr(DockerEngine, "pulled", None)
            engine.images.name(send(images, one, engine), "team/one:1")
    digest = send(images, two, engine)
    assert all(offer.sent.isdisjoint(diff_ids(images, one)) for offer in offers)
    if why != "unreachable":
        assert len(offers) == 1
        site.call("rmi", "team/one:1")
    holds(site, digest, f"{why} 1")


@contextmanager
def _nowhere() -> Iterator[Offer]:
    yield Offer(f"127.0.0.1:1/{'0' * 32}@sha256:{'0' * 64}")


class _Long(datetime):
    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.engines
def test_what_a_killed_run_left_is_gone_with_the_next(
    site: Site, engine: DockerEngine, images: ImageStore, offers: list[Offer], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    one, two = (image_with(images, text) for text in ("one", "two"))
    with monkeypatch.context() as patch:
        patch.setattr(carrier, "datetime", _Long)
        patch.setattr(engine, "load", killed)
        patch.setattr(engine._client.api, "remove_image", killed)
        with pytest.raises(Killed):
            send(images, one, engine)
    assert len(site.call("images", "--quiet", "--filter", f"label={CARRIER}").split()) == 1
    holds(site, send(images, two, engine), "two")
