"""What Docker and Podman share: the rendered Dockerfile is built, an image is known by its ID and told by the
same JSON, a program is run twice in containers. `docker` and `podman` have what differs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ImageError
from ..fetch.arrivals import Arrivals
from ..host.host import Host
from ..lock.model import Lock
from ..oci.archive_manifest import with_platform
from ..oci.file_tree import ImageTree
from ..oci.merge_layers import Keep
from ..oci.store import Image, lowest_below
from ..oci.tar_fields import LayerRefused
from ..render.labels import LABEL
from .protocols import WriteContext

READ = LABEL + "read"
"""The label of a container that is made for its files."""

Facts = Mapping[str, Any]
"""What ``docker image inspect`` and ``podman image inspect`` print of an image."""


class ContainerImages(ABC):
    """The images of an engine. Their digest is the engine's image ID, after ``sha256:``."""

    @abstractmethod
    def inspect(self, references: Sequence[str]) -> Sequence[Facts]:
        """Return what the engine says of images. Raises `ImageError` for one that is not there."""

    @abstractmethod
    def labelled(self, label: str) -> Sequence[str]:
        """Return the IDs of the images with a label."""

    @abstractmethod
    def name(self, digest: str, name: str) -> None:
        """Name an image; see `protocols.Images`."""

    @abstractmethod
    def read_tree(self, facts: Facts, where: str, config: Mapping[str, Any], keep: Keep) -> ImageTree:
        """Return the files of an image with a configuration."""

    @abstractmethod
    def read_file(self, digest: str, path: str) -> bytes | None:
        """Return the content of a file. Raises `LayerRefused` if it must not be read."""

    def find(self, reference: str) -> Image:
        """Return the image of a name or image ID. Raises `ImageError`."""
        [facts] = self.inspect([reference])
        return Image(
            digest=_digest(facts),
            names=tuple(sorted(name for name in facts.get("RepoTags") or () if name != "<none>:<none>")),
            size=int(facts["Size"]),
            labels=facts["Config"].get("Labels") or {},
        )

    def parent_of(self, image: Image) -> Image | None:
        """Return the image that one starts from, recognised by its layers; see `protocols.Images`."""
        found = self.stacks(f"{LABEL}lock={image.labels.get(LABEL + 'lock', '')}")
        below = lowest_below(_layers(*self.inspect([image.digest])), found)
        return self.find(below) if below is not None else None

    def stacks(self, label: str) -> Mapping[str, Sequence[str]]:
        """Return the layers of the images with a label; see `protocols.Keeper`."""
        found = self.labelled(label)
        return {_digest(facts): _layers(facts) for facts in (self.inspect(found) if found else ())}

    def tree(self, digest: str, where: str, keep: Keep) -> ImageTree:
        """Return the files of an image; see `protocols.Images`."""
        [facts] = self.inspect([digest])
        config = with_platform(facts["Config"], facts, "Os", "Architecture")
        return self.read_tree(facts, where, config, keep)

    def file(self, digest: str, path: str) -> bytes | None:
        """Return the content of a file, as the engine's ``cp`` has it; see `protocols.Images`."""
        try:
            return self.read_file(digest, path)
        except LayerRefused as refused:
            raise ImageError(f"{digest}: /{path} cannot be read: {refused}") from None


class ContainerEngine(ABC):
    """An engine that builds the rendered Dockerfile itself."""

    images: ContainerImages
    _host: Host

    @abstractmethod
    def build_context(self, lock: Lock, context: Path, answer: Path) -> str:
        """Build a folder without a network; return the image's ID, read from the file ``answer``."""

    def build(self, lock: Lock, context: WriteContext, arrivals: Arrivals | None = None) -> str:
        """Build the rendered Dockerfile; see `protocols.Engine`."""
        if arrivals is not None:
            arrivals.wait()
        with self._host.home.scratch("context") as folder:
            inside = folder / "context"
            inside.mkdir()
            context(inside)
            return self.images.find(self.build_context(lock, inside, folder / "answer")).digest


def _digest(facts: Facts) -> str:
    return f"sha256:{facts['Id'].removeprefix('sha256:')}"


def _layers(facts: Facts) -> Sequence[str]:
    return list(facts["RootFS"].get("Layers") or ())
