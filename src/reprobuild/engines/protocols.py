"""Interface of all engines: build a lock's image, run programs in it, tag, import and export images.

`oci` makes layers itself; `docker` and `podman` take those, or build the rendered Dockerfile independently.
All give the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from ..errors import HostError
from ..fetch.arrivals import Arrivals
from ..host.limits import Limits
from ..host.sandbox import Bind
from ..lock.model import Lock
from ..oci.file_tree import ImageTree
from ..oci.merge_layers import Keep
from ..oci.store import Image
from ..selftest.run import Runner
from ..twice.recorded_run import RecordedRun
from .cdi import GpuAccess

EngineName = Literal["oci", "docker", "podman"]

WriteContext = Callable[[Path], None]
"""Writes the Dockerfile and everything that it copies into an empty folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """A command's access to this machine: by default no folder, no network, no GPU."""

    env: Mapping[str, str] = field(default_factory=dict)
    """In addition to the image's variables, which they override."""
    binds: Sequence[Bind] = ()
    network: bool = False
    """Whether it has the host's network."""
    gpu: GpuAccess | None = None
    workdir: str | None = None
    """In place of the image's own."""
    user: str | None = None
    """UID[:GID] or the names that the image has for them, in place of the image's own; HOME is that user's,
    where nothing sets it."""
    limits: Limits | None = None
    """By default the machine's memory, and in the embedded engine as many processes as `default_processes`
    says; in others their own default."""


def require_gpu(missing: str | None) -> None:
    """Raise `HostError` with the reason why no GPU can be passed in, if there is one."""
    if missing is not None:
        raise HostError(f"--gpu require: {missing}", hint="leave --gpu out to test on the CPU alone")


class Images(Protocol):
    """The images that an engine keeps."""

    def find(self, reference: str) -> Image:
        """Return the image of a name or digest. Raises `ImageError`."""

    def name(self, digest: str, name: str) -> None:
        """Name an image; another image loses the name. Only tag.py and transfer.py call this."""

    def parent_of(self, image: Image) -> Image | None:
        """Return the image that one starts from and has its lock from, or None if it is not here."""

    def tree(self, digest: str, where: str, keep: Keep) -> ImageTree:
        """Return the files of an image; ``where`` is what messages call it. Raises `ImageError`."""

    def file(self, digest: str, path: str) -> bytes | None:
        """Return the content of a file by its path without a leading slash; nothing of the image is run.

        None where there is no such file. Raises `ImageError`.
        """


class Keeper(Images, Protocol):
    """The images of an engine that images can be loaded into."""

    def stacks(self, label: str) -> Mapping[str, Sequence[str]]:
        """Return the layers (``diff_id``, the lowest first) of the images with a label, by their digest.

        ``label`` is a label's name, or ``NAME=VALUE``. Raises `EngineError`.
        """


class Engine(Protocol):
    """One of the three. Each raises `HostError` and `BuildError`, docker and podman also `EngineError`."""

    @property
    def kind(self) -> EngineName:
        """Its name on the command line."""

    @property
    def built_by(self) -> EngineName:
        """Which engine makes what it builds: itself, or the one that hands its layers over."""

    @property
    def images(self) -> Images:
        """The images that it keeps."""

    def check(self, *, gpu: bool) -> None:
        """Raise if the engine lacks requirements for builds and tests, before gigabytes are downloaded.

        ``gpu``: whether it must be able to pass in a GPU.
        """

    def build(self, lock: Lock, context: WriteContext, arrivals: Arrivals | None = None) -> str:
        """Build the image of a lock, without a name and without a network; return its digest.

        Everything locked must be in the store, or come there as ``arrivals`` tells; raises `Stopped` when it
        will not. An engine that makes layers itself does not use the context.
        """

    def runner(self, digest: str) -> Runner:
        """Return what runs programs in an image for the self-test."""


class Recorder(Engine, Protocol):
    """An engine that runs programs under the recorder of ``twice``: that which keeps an image."""

    def recorded(self, reference: str, argv: Sequence[str], options: RunOptions) -> RecordedRun:
        """Return what runs a command in an image under the recorder of ``twice``, its output kept.

        Each run writes into a view of its own of the folders that ``options`` lets it write to.
        """


class Taker(Protocol):
    """An engine that images can be loaded into."""

    @property
    def kind(self) -> EngineName:
        """Its name on the command line."""

    @property
    def images(self) -> Keeper:
        """The images that it keeps."""

    @property
    def keeps_manifests(self) -> bool:
        """Whether it identifies an image by the digest of its manifest, else by that of its configuration."""

    @property
    def takes_oci(self) -> bool:
        """Whether it reads an OCI archive with layers compressed by zstd."""

    def load(self, archive: Iterator[bytes]) -> None:
        """Load the image of an archive. Raises `EngineError`."""

    @property
    def pulled(self) -> Callable[[str], AbstractContextManager[bool]] | None:
        """Return what pulls an image by its reference on this machine's loopback, and removes it in the end.

        Within the block it says whether the image has come. None where an archive is as fast, or the engine
        is on another machine.
        """

    @property
    def load_folder(self) -> Callable[[Path], None] | None:
        """Return a function that loads the single image of an OCI layout, and raises `EngineError`.

        None where it cannot read a folder of this machine.
        """
