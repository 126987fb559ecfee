"""Docker: the rendered Dockerfile, built by BuildKit in one of three ways.

- buildx through a pipe, which rewrites time stamps: Docker 26 and newer with containerd's image store, and
  builders that are elsewhere
- buildx into the daemon: others that have buildx; BuildKit before 0.13 cannot rewrite time stamps
  (https://github.com/moby/buildkit/pull/4057), nor can what goes straight into a store
  (https://github.com/moby/buildkit/issues/4230)
- ``docker build``: a ``docker`` command older than 23 without buildx, as Debian 12 has it

The daemon is the one that the ``docker`` command uses: DOCKER_HOST, else the current context. The SDK does
everything but BuildKit's export, which it does not support (https://github.com/docker/docker-py/issues/2230).
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import docker
from docker.errors import APIError, ImageNotFound, NotFound
from docker.models.containers import Container

from ..errors import BuildError, EngineError, HostError, ImageError
from ..host import process
from ..host.host import Host
from ..lock.model import Lock
from ..oci.extract_file import file_of_tar
from ..oci.file_tree import ImageTree, read_overlay, read_root
from ..oci.merge_layers import Keep
from ..oci.overlay_layer import sees_overlay_notes
from ..oci.store import image_name
from ..oci.stream import CHUNK, from_chunks
from ..oci.tar_fields import LayerRefused
from ..twice.recorded_run import RecordedRun
from . import engine_errors
from .container_engine import READ, ContainerEngine, ContainerImages, Facts
from .container_twice import recorded
from .docker_client import (
    Builder,
    connect,
    docker_errors,
    find_builder,
    has_buildx,
    has_own_buildkit,
    is_local,
    raise_if_gone,
)
from .docker_layers import are_readable, listed_layers, mounted_layers
from .docker_runner import DockerRunner, removed
from .docker_twice import twice_in_docker
from .loopback_registry import CARRIER
from .protocols import EngineName, RunOptions, require_gpu

if TYPE_CHECKING:
    from collections.abc import Generator

log = logging.getLogger(__name__)

_SNAPSHOTTER = "io.containerd.snapshotter.v1"
_NO_EXPORT = re.compile(
    r"exporter (feature )?is (currently )?not supported|not support exporting", re.IGNORECASE
)
_REWRITES = (1, 45)
"""The API of Docker 26.0, the first with a BuildKit (0.13) that rewrites time stamps."""


class DockerEngine(ContainerEngine):
    """Builds, keeps and runs images in a Docker daemon. Raises `HostError` if none answers."""

    kind: EngineName = "docker"
    built_by: EngineName = "docker"

    def __init__(self, host: Host, builder: str | None = None) -> None:
        self._host, self._builder = host, builder
        self._client = connect()
        with docker_errors("ask Docker about itself"):
            self._info: Mapping[str, Any] = self._client.info()
            self._api = tuple(int(n) for n in self._client.version()["ApiVersion"].split("."))
        self.images = DockerImages(self._client, host)

    @property
    def keeps_manifests(self) -> bool:
        """Whether images are in containerd's store, which keeps manifests, and so digests, unchanged."""
        return [_SNAPSHOTTER] in [status[1:] for status in self._info.get("DriverStatus") or []]

    @property
    def takes_oci(self) -> bool:
        """True with containerd's store; the older one may not support zstd."""
        return self.keeps_manifests

    def check(self, *, gpu: bool) -> None:
        """Raise `HostError` if a requirement of a build is missing, or ``gpu`` is set without a GPU."""
        if gpu:
            require_gpu(self.runner("").gpu_missing())
        if not has_buildx() and (self._builder is not None or not has_own_buildkit()):
            raise HostError(
                "the docker command on this machine has no buildx, which builds a Dockerfile",
                hint="apt-get install -y docker-buildx (in Debian 13; docker-buildx-plugin in Docker's own"
                " packages), or leave --builder and --independent out",
            )
        if self._builder is not None:
            find_builder(self._builder)  # asked for its errors, before gigabytes are fetched

    def build_context(self, lock: Lock, context: Path, answer: Path) -> str:
        """Build a folder; see `ContainerEngine`. Warns of what an old Docker cannot do."""
        if has_buildx():
            return self._buildkit(lock, context, answer)
        self._host.console.warn(
            "the docker command on this machine has no buildx: what it builds has the same files,"
            " but another digest at each build, since it cannot rewrite time stamps"
        )
        return self._own_buildkit(lock, context, answer)

    def _buildkit(self, lock: Lock, folder: Path, facts: Path) -> str:
        """Build with buildx; if the exporter can, with time stamps that are the same at every build."""
        builder = Builder() if self._builder is None else find_builder(self._builder)
        command = [
            *(process.require("docker", "to build with BuildKit"), *builder.command),
            *("--network", "none", "--platform", lock.platform, "--progress", "plain"),
            *("--provenance", "false", "--sbom", "false"),
            *("--build-arg", f"SOURCE_DATE_EPOCH={lock.epoch}", "--metadata-file", str(facts), str(folder)),
        ]
        try:
            if builder.elsewhere or (self.keeps_manifests and self._api >= _REWRITES):
                # An image that goes straight into the daemon's store keeps its time stamps: this one goes
                # through a pipe.
                form = "oci,compression=zstd,force-compression=true" if self.keeps_manifests else "docker"
                with process.stream(
                    [*command, "--output", f"type={form},rewrite-timestamp=true,dest=-"]
                ) as out:
                    self.load(iter(partial(out.read, CHUNK), b""))
            else:
                self._host.console.warn(
                    "this Docker cannot rewrite time stamps: it gives the same files, but another digest at"
                    " each build (Docker 26 with containerd's image store can, and so can buildx's builders)"
                )
                process.run([*command, "--load"])
            found = json.loads(facts.read_bytes())
        except process.ProcessFailed as failed:
            if builder.elsewhere and _NO_EXPORT.search(failed.tail):
                raise HostError(
                    f"--builder {self._builder}: that Docker cannot export what it builds: {failed.tail}",
                    hint="turn on its containerd image store (containerd-snapshotter in its daemon.json);"
                    f" or build, test and keep the image there: DOCKER_CONTEXT={self._builder}",
                ) from None
            raise _build_failed(failed.tail) from None
        # What the daemon knows the image by: the manifest in containerd's store, else the configuration.
        keys = ("containerimage.digest", "containerimage.config.digest")
        return str(found[keys[0] if self.keeps_manifests else keys[1]])

    def _own_buildkit(self, lock: Lock, folder: Path, told: Path) -> str:
        """Build with the BuildKit in an old Docker, which commits no stage but the last."""
        command = [
            *(process.require("docker", "to build with BuildKit"), "build", "--iidfile", str(told)),
            *("--network", "none", "--platform", lock.platform, "--progress", "plain", str(folder)),
        ]
        try:
            process.run(command, env={**os.environ, "DOCKER_BUILDKIT": "1"})
        except process.ProcessFailed as failed:
            raise _build_failed(failed.tail) from None
        return told.read_text().strip()

    def runner(self, digest: str) -> DockerRunner:
        """Return what runs programs in an image for the self-test."""
        return DockerRunner(self._client, self._info, digest)

    def recorded(self, reference: str, argv: Sequence[str], how: RunOptions) -> RecordedRun:
        """Return what runs a command under the recorder of ``twice``; see `protocols.Recorder`."""
        image = self.images.find(reference)
        return recorded(partial(twice_in_docker, self.runner(image.digest), how), image, argv, how)

    @property
    def load_folder(self) -> None:
        """None: Docker reads archives alone."""

    @property
    def pulled(self) -> Callable[[str], AbstractContextManager[bool]] | None:
        """Function that pulls into the older store of a local daemon; see `protocols.Taker`.

        There ``docker load`` writes every file twice, one layer after the other.
        """
        return self._pulled if is_local() and not self.keeps_manifests else None

    @contextmanager
    def _pulled(self, reference: str) -> Iterator[bool]:
        repository, _, digest = reference.partition("@")
        # Left by a run that was killed; where another prunes at this moment, that will do.
        with suppress(EngineError), docker_errors("remove an image"):
            self._client.images.prune(filters={"dangling": False, "label": CARRIER, "until": "1h"})
        came = True
        try:
            with docker_errors("pull an image"):
                # Without credentials: the user's programs for them need not be asked about this registry.
                events = self._client.api.pull(repository, digest, stream=True, decode=True, auth_config={})
                for event in events:
                    if "error" in event:
                        raise engine_errors.refused("Docker", "pull an image", str(event["error"]))
        except EngineError as refused:
            log.info("%s", refused)
            came = False
        try:
            yield came
        finally:
            with docker_errors("remove an image"), suppress(ImageNotFound):
                self._client.api.remove_image(reference, force=True)

    def load(self, archive: Iterator[bytes]) -> None:
        """Load an image archive."""
        with docker_errors("load an image"):
            response = self._client.api.load_image(archive)  # type: ignore[no-untyped-call]  # the SDK has no types
            for event in response or ():
                if "error" in event:
                    raise engine_errors.refused("Docker", "load an image", str(event["error"]))


class DockerImages(ContainerImages):
    """The daemon's images."""

    def __init__(self, client: docker.DockerClient, host: Host) -> None:
        self._client, self._host = client, host

    def inspect(self, references: Sequence[str]) -> Sequence[Facts]:
        """Query the daemon for images; see `ContainerImages`."""
        with docker_errors("look for an image"):
            try:
                return [self._client.images.get(each).attrs for each in references]
            except APIError as error:
                if not isinstance(error, ImageNotFound) and "invalid reference format" not in str(error):
                    raise
                raise ImageError(
                    f"Docker has no image {references[0]!r}", hint="`docker images` lists them"
                ) from None

    def labelled(self, label: str) -> Sequence[str]:
        """Return the IDs of the images with a label."""
        with docker_errors("look for an image"):
            found = self._client.api.images(filters={"label": label}, quiet=True)
        return sorted({str(each) for each in found})

    def name(self, digest: str, name: str) -> None:
        """Name an image; see `protocols.Images`."""
        repository, _, tag = image_name(name).rpartition(":")
        with docker_errors("name an image"):
            self._client.api.tag(digest, repository, tag)

    def read_tree(self, facts: Facts, where: str, config: Mapping[str, Any], keep: Keep) -> ImageTree:
        """Return the files of an image.

        Where its layers lie on this disk and may be read, from there. Else from a container that is never
        started, in which Docker hides some paths; ``docker save`` would first write all layers out.
        """
        # What cannot be read from there, or has just been taken away, is for the daemon to say.
        with suppress(LayerRefused, OSError, ValueError, TypeError):
            if layers := self._folders(facts):
                return read_overlay(layers, config, keep=keep)
        with docker_errors("read an image"), self._container(facts["Id"]) as container:
            chunks = self._client.api.export(str(container.id), chunk_size=CHUNK)
            with closing(chunks):
                return read_root(from_chunks(chunks), where, config, keep=keep, replaced=True)

    def _folders(self, facts: Facts) -> list[Path]:
        """Return the folders of an image's layers on this disk; none where they may not be read."""
        with docker_errors("read an image"):
            info = self._client.info()
            if not are_readable(info) or not sees_overlay_notes(self._host.home.folder("tmp")):
                return []
            if layers := listed_layers(facts):
                return layers
            count = len(facts["RootFS"].get("Layers") or ())
            with self._container(facts["Id"]) as container:
                return mounted_layers(self._client, str(container.id), count)

    def read_file(self, digest: str, path: str) -> bytes | None:
        """Return the content of a file through ``docker cp``."""
        with docker_errors("read an image"), self._container(digest) as container:
            try:
                chunks, _ = container.get_archive(f"/{path}", chunk_size=CHUNK)
            except NotFound:
                return None
            with closing(cast("Generator[bytes]", chunks)):
                return file_of_tar(from_chunks(chunks), path.rpartition("/")[2])

    @contextmanager
    def _container(self, digest: str) -> Iterator[Container]:
        """Yield a container of an image that is never started."""
        # Left by a run that was killed. The daemon decides by its own clock.
        self._client.containers.prune(filters={"label": READ, "until": "1h"})
        container = self._client.containers.create(
            digest, ["-"], entrypoint=[], network_mode="none", labels={READ: "1"}
        )
        with removed(container):
            yield container


def _build_failed(text: str) -> BuildError | EngineError:
    raise_if_gone("build", text)
    return engine_errors.build_failed("Docker", text)
