"""What every engine offers: build the image of a lock, run programs in it, keep names, take and give images.

`oci` makes layers itself; `docker` and `podman` build the rendered Dockerfile. All three give the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol

from ..errors import HostError
from ..lock.model import Lock
from ..oci.store import Image
from ..oci.stream import Member
from ..selftest.run import Runner

EngineName = Literal["oci", "docker", "podman"]

WriteContext = Callable[[Path], None]
"""Writes the Dockerfile and all that it copies into an empty folder."""


def require_gpu(missing: str | None) -> None:
    """Raise `HostError` with the reason why no GPU can be handed in, if there is one."""
    if missing is not None:
        raise HostError(f"--gpu require: {missing}", hint="leave --gpu out to test on the CPU alone")


class Images(Protocol):
    """The images that an engine keeps."""

    def find(self, reference: str) -> Image:
        """Return the image of a name or digest. Raises `ImageError`."""

    def name(self, digest: str, name: str) -> None:
        """Give an image a name, taken from the image that had it. Only tag.py and transfer.py call this."""

    def parent_of(self, image: Image) -> Image | None:
        """Return the image that one starts from and has its lock from, or None when it is not here."""

    def opened(self, digest: str) -> AbstractContextManager[Iterator[Member]]:
        """Give the members of the image's archive, in the form of ``docker save`` or an OCI layout.

        Each file can be read until the next is asked for.
        """


class Engine(Protocol):
    """One of the three. Each raises `HostError` and `BuildError`, docker and podman also `EngineError`."""

    @property
    def kind(self) -> EngineName:
        """Its name on the command line."""

    @property
    def images(self) -> Images:
        """Its images."""

    def check(self, *, gpu: bool) -> None:
        """Raise for what the engine lacks to build and test, before gigabytes are fetched.

        ``gpu``: whether it must be able to hand in a GPU.
        """

    def build(self, lock: Lock, context: WriteContext) -> str:
        """Build the image of a lock, without a name and without a network; return its digest.

        All that is locked must be in the store. An engine that makes layers itself asks for no context.
        """

    def runner(self, digest: str) -> Runner:
        """Return what runs programs in an image for the self-test."""


class Taker(Protocol):
    """An engine that takes images in."""

    @property
    def kind(self) -> EngineName:
        """Its name on the command line."""

    @property
    def images(self) -> Images:
        """Its images."""

    @property
    def keeps_manifests(self) -> bool:
        """Whether it knows an image by the digest of its manifest, else by that of its configuration."""

    @property
    def takes_oci(self) -> bool:
        """Whether it reads an OCI archive with layers compressed by zstd."""

    def load(self, archive: Iterator[bytes]) -> None:
        """Take in the image of an archive. Raises `EngineError`."""
