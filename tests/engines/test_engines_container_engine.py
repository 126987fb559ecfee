"""What Docker and Podman share, over an engine of four images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from docker.errors import APIError, ImageNotFound

from reprobuild.engines.container_engine import ContainerImages, Facts
from reprobuild.engines.docker import DockerImages
from reprobuild.errors import ImageError
from reprobuild.oci.file_tree import ImageTree
from reprobuild.oci.merge_layers import Keep
from reprobuild.oci.tar_fields import LayerRefused
from reprobuild.render.labels import LABEL
from support.hosts import quiet_host


def image(digest: str, layers: list[str] | None, label: str | None = "l", tags: Any = ()) -> Facts:
    labels = None if label is None else {f"{LABEL}lock": label}
    config = {"Labels": labels, "Env": ["A=1"]}
    return {
        "Id": digest,
        "Config": config,
        "Size": 5,
        "RepoTags": tags,
        "RootFS": {"Layers": layers},
        "Os": "linux",
        "Architecture": "amd64",
    }


class Fake(ContainerImages):
    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []
        self.known = {
            "sha256:base": image("base", ["1", "2"]),
            "sha256:ours": image("sha256:ours", ["1", "2", "3"], tags=["b:1", "<none>:<none>", "a:1"]),
            "sha256:other": image("other", ["1", "9"]),
            "sha256:bare": image("bare", None, None, None),
        }

    def inspect(self, references: Sequence[str]) -> Sequence[Facts]:
        self.asked.append(references)
        return [self.known[each] for each in references]

    def labelled(self, label: str) -> Sequence[str]:
        wanted = label.partition("=")[2]
        return [key for key, each in self.known.items() if (each["Config"]["Labels"] or {}) == lock(wanted)]

    def name(self, digest: str, name: str) -> None:
        raise NotImplementedError

    def read_tree(self, facts: Facts, where: str, config: Mapping[str, Any], keep: Keep) -> ImageTree:
        raise LayerRefused(f"{facts['Id']} {where} {config['platform']}")

    def read_file(self, digest: str, path: str) -> bytes | None:
        if path == "link":
            raise LayerRefused("a link")
        return None


def lock(text: str) -> Mapping[str, str]:
    return {f"{LABEL}lock": text}


def test_an_image_is_known_by_its_id_and_named_by_what_names_it() -> None:
    found = Fake().find("sha256:ours")
    assert (found.digest, found.names, found.labels) == ("sha256:ours", ("a:1", "b:1"), lock("l"))
    bare = Fake().find("sha256:bare")
    assert (bare.digest, bare.names, bare.labels) == ("sha256:bare", (), {})


def test_the_image_below_is_the_one_with_most_of_the_layers() -> None:
    images = Fake()
    below = images.parent_of(images.find("sha256:ours"))
    assert below is not None
    assert below.digest == "sha256:base"
    assert images.parent_of(images.find("sha256:bare")) is None


def test_nothing_is_asked_about_no_images() -> None:
    images = Fake()
    assert images.stacks(f"{LABEL}lock=none") == {}
    assert images.asked == []


def test_a_file_that_is_not_to_be_read_is_an_error_and_none_that_is_missing() -> None:
    assert Fake().file("sha256:ours", "etc/a") is None
    with pytest.raises(ImageError, match="sha256:ours: /link cannot be read: a link"):
        Fake().file("sha256:ours", "link")


def test_a_tree_has_the_platform_of_its_image() -> None:
    with pytest.raises(LayerRefused, match="base here linux/amd64"):
        Fake().tree("sha256:base", "here", lambda *_: False)


@pytest.mark.parametrize("error", [ImageNotFound("no such image"), APIError("invalid reference format")])
def test_what_names_no_image_of_docker_is_no_image(error: APIError) -> None:
    class Client:
        images: Any

        def get(self, reference: str) -> None:
            raise error

    client = Client()
    client.images = client
    with pytest.raises(ImageError, match="Docker has no image '-x'"):
        DockerImages(cast("Any", client), quiet_host()).find("-x")
