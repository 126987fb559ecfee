"""Layers that an engine gets: pulled from this machine, or as an archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, tzinfo
from pathlib import Path
from typing import IO, Self

import pytest

from reprobuild.engines import loopback_registry, transfer
from reprobuild.engines.docker import DockerEngine
from reprobuild.engines.loopback_registry import CARRIER
from reprobuild.engines.transfer import send
from reprobuild.errors import ImageError
from reprobuild.host.console import Console
from reprobuild.host.host import Host
from reprobuild.oci.recompress import inflated
from reprobuild.oci.store import Image, ImageStore
from support.engines import Site, new_docker, old_docker
from support.loopback import damage, image_with

pytest_plugins = ["support.shared", "support.loopback"]


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
def sent(images: ImageStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The blobs whose layers are pulled while the test runs."""
    found: list[str] = []

    def noted(blob: Path) -> AbstractContextManager[IO[bytes]]:
        found.append(blob.name)
        return inflated(blob)

    monkeypatch.setattr(loopback_registry, "inflated", noted)
    return found


def blobs(images: ImageStore, image: Image) -> list[str]:
    return [blob.name for blob, _ in images.layers(image.digest)]


def holds(site: Site, digest: str, text: str) -> None:
    """Assert that Docker has that image alone, and that its files are there."""
    assert site.call("images", "--all", "--quiet", "--no-trunc").split() == [digest]
    assert site.call("run", "--rm", "--network", "none", digest, "cat", "/etc/which") == text


@pytest.mark.engines
def test_docker_pulls_the_layers_that_it_lacks(
    site: Site, engine: DockerEngine, images: ImageStore, sent: list[str]
) -> None:
    one, two = (image_with(images, text) for text in ("one", "two"))
    digest = send(images, one, engine)
    assert digest == images.manifest(one.digest)["config"]["digest"]
    assert sorted(sent) == sorted(blobs(images, one))
    holds(site, digest, "one")
    sent.clear()
    other = send(images, two, engine)
    assert sent == blobs(images, two)[-1:]
    site.call("rmi", digest)
    holds(site, other, "two")


@pytest.mark.engines
def test_layers_that_came_in_an_archive_are_not_pulled_again(
    site: Site, engine: DockerEngine, images: ImageStore, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker does not know them by a digest of a registry's, and would ask for them."""
    one, two = (image_with(images, text) for text in ("one", "two"))
    with monkeypatch.context() as patch:
        patch.setattr(DockerEngine, "pulled", None)
        first = send(images, one, engine)
    digest = send(images, two, engine)
    assert set(sent).isdisjoint(blobs(images, one))
    site.call("rmi", first)
    holds(site, digest, "two")


@pytest.mark.engines
def test_a_daemon_that_cannot_reach_this_machine_gets_an_archive(
    site: Site, engine: DockerEngine, images: ImageStore, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = f"127.0.0.1:1/{'0' * 32}@sha256:{'0' * 64}"
    monkeypatch.setattr(transfer, "offered", lambda *_, **__: nullcontext(nowhere))
    holds(site, send(images, image_with(images, "one"), engine), "one")
    assert sent == []


@pytest.mark.engines
@pytest.mark.parametrize("way", ["pull", "archive"])
def test_a_damaged_layer_is_named_and_docker_is_not_blamed(
    site: Site, engine: DockerEngine, images: ImageStore, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    image = image_with(images, "one")
    damage(images, image)
    if way == "archive":
        monkeypatch.setattr(DockerEngine, "pulled", None)
    with pytest.raises(ImageError, match="the image store is damaged"):
        send(images, image, engine)
    assert site.call("images", "--all", "--quiet") == ""


class _LongAgo(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls(2020, 1, 1, tzinfo=tz)


@pytest.mark.engines
def test_what_a_killed_run_left_is_gone_with_the_next(
    site: Site, engine: DockerEngine, images: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    one, two = (image_with(images, text) for text in ("one", "two"))
    with monkeypatch.context() as patch:
        patch.setattr(loopback_registry, "datetime", _LongAgo)
        patch.setattr(engine, "load", killed)
        patch.setattr(engine._client.api, "remove_image", killed)
        with pytest.raises(Killed):
            send(images, one, engine)
    assert len(site.call("images", "--quiet", "--filter", f"label={CARRIER}").split()) == 1
    holds(site, send(images, two, engine), "two")
