"""Docker: the rendered Dockerfile, built by BuildKit through buildx, or by the daemon's own old builder.

Which daemon is the user's choice, as for the ``docker`` command: DOCKER_HOST, else the context in use. The
SDK does all but BuildKit's export, which it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest

from .. import process
from ..console import Console
from ..errors import BuildError, EngineError, HostError, ImageError
from ..home import Home
from ..image_config import LABEL
from ..lockfile import Lock
from . import failures
from .base import EngineName, WriteContext, require_gpu
from .gpu import CDI_FOLDERS, KIND, has_cdi
from .layout import Image, image_name
from .stream import Member, tar_members, tar_of_folder

_SNAPSHOTTER = "io.containerd.snapshotter.v1"
_REWRITES = (1, 45)
"""The API of Docker 26.0, the first with a BuildKit (0.13) that rewrites time stamps."""

_TMPFS = "rw,exec,nosuid,nodev,mode=1777"
_GONE = (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)
_SLOW = (requests.exceptions.ReadTimeout, requests.exceptions.ConnectTimeout)


class DockerEngine:
    """Builds, keeps and runs images in a Docker daemon. Raises `HostError` when none answers."""

    kind: EngineName = "docker"

    def __init__(self, home: Home, console: Console, builder: str | None = None) -> None:
        self._home, self._console, self._builder = home, console, builder
        self._client = connect()
        with docker_errors("ask Docker about itself"):
            self._info: Mapping[str, Any] = self._client.info()
            self._api = tuple(int(n) for n in self._client.version()["ApiVersion"].split("."))
        self.images = DockerImages(self._client)

    @property
    def containerd(self) -> bool:
        """Whether images lie in containerd's store, which keeps manifests, and so digests, as they are."""
        return [_SNAPSHOTTER] in [status[1:] for status in self._info.get("DriverStatus") or []]

    def check(self, *, gpu: bool) -> None:
        """Raise `HostError` when a builder was named and there is no buildx, or no GPU though wanted."""
        if gpu:
            require_gpu(self.runner("").gpu_missing())
        if self._builder is not None and not has_buildx():
            raise HostError(
                "--builder: the docker command has no buildx here",
                hint="apt-get install -y docker-buildx (in Debian 13), or leave --builder out",
            )

    def build(self, lock: Lock, context: WriteContext) -> str:
        """Build the rendered Dockerfile; see `base.Engine`. Names what an old Docker cannot do."""
        with self._home.scratch("context") as folder:
            context(folder)
            if has_buildx():
                return self._buildkit(lock, folder)
            self._console.warn(
                "docker has no buildx here, so its old builder is used: the same files, but a digest of"
                " its own at each build, since it cannot rewrite time stamps"
            )
            return self._legacy(folder)

    def _buildkit(self, lock: Lock, folder: Path) -> str:
        """Build with buildx; where the exporter can, with time stamps that are the same at every build."""
        facts = folder.with_name(folder.name + ".json")
        own = self._builder is not None and _driver(self._builder) != "docker"
        if own:
            # The builder has a store of its own; its result travels through this pipe into the daemon.
            output = "type=docker,rewrite-timestamp=true"
        elif self.containerd and self._api >= _REWRITES:
            output = "type=image,rewrite-timestamp=true,unpack=false,compression=zstd,force-compression=true"
        else:
            output = "type=image" if self.containerd else "type=docker"
            self._console.warn(
                "this Docker cannot rewrite time stamps: the same files, but a digest of its own at each"
                " build (it takes Docker 26 with the image store of containerd, or a builder of its own)"
            )
        command = [
            *(process.require("docker", "to build with BuildKit"), "buildx", "build"),
            *(("--builder", self._builder) if self._builder is not None else ()),
            *("--network", "none", "--platform", lock.platform, "--progress", "plain"),
            *("--provenance", "false", "--sbom", "false"),
            *("--build-arg", f"SOURCE_DATE_EPOCH={lock.epoch}", "--metadata-file", str(facts)),
            *("--output", output, str(folder)),
        ]
        try:
            process.run(command)
            found = json.loads(facts.read_bytes())
        except process.ProcessFailed as failed:
            raise _build_failed(failed.tail) from None
        finally:
            facts.unlink(missing_ok=True)
        # What the daemon knows the image by: the manifest in containerd's store, else the configuration.
        keys = ("containerimage.digest", "containerimage.config.digest")
        return self.images.find(str(found[keys[0] if self.containerd else keys[1]])).digest

    def _legacy(self, folder: Path) -> str:
        digest = ""
        with docker_errors("build"), tar_of_folder(folder) as archive:
            events = self._client.api.build(
                fileobj=archive, custom_context=True, rm=True, forcerm=True, network_mode="none", decode=True
            )
            for event in events:
                if "error" in event:
                    raise _build_failed(str(event["error"]))
                digest = event.get("aux", {}).get("ID", digest)
        if not digest:
            raise EngineError("Docker ended its build without an image", hint="look at the daemon's log")
        return digest

    def runner(self, digest: str) -> DockerRunner:
        """Return what runs programs in an image for the self-test."""
        return DockerRunner(self._client, self._info, self._home, digest)

    def load(self, archive: Iterator[bytes]) -> None:
        """Take in an image archive."""
        with docker_errors("load an image"):
            response = self._client.api.load_image(archive)  # type: ignore[no-untyped-call]
            for event in response or ():
                if "error" in event:
                    raise failures.refused("Docker", "load an image", str(event["error"]))


class DockerImages:
    """The daemon's images. Their digest is the identifier that the daemon gives them."""

    def __init__(self, client: docker.DockerClient) -> None:
        self._client = client

    def find(self, reference: str) -> Image:
        """Return the image of a name or identifier. Raises `ImageError`."""
        with docker_errors("look for an image"):
            try:
                image = self._client.images.get(reference)
            except ImageNotFound:
                raise ImageError(
                    f"Docker has no image {reference!r}", hint="`docker images` lists those that it has"
                ) from None
        return Image(
            digest=str(image.id),
            names=tuple(sorted(image.tags)),
            size=int(image.attrs["Size"]),
            labels=image.labels or {},
        )

    def name(self, digest: str, name: str) -> None:
        """Give an image a name; see `base.Images`."""
        failures.refuse_stranger(self, name)
        repository, _, tag = image_name(name).rpartition(":")
        with docker_errors("name an image"):
            self._client.api.tag(digest, repository, tag)

    @contextmanager
    def opened(self, digest: str) -> Iterator[Iterator[Member]]:
        """Give the members of the archive that ``docker save`` writes; see `base.Images`."""
        with docker_errors("save an image"):
            yield tar_members(self._client.api.get_image(digest))


class DockerRunner:
    """Runs programs in one image as the self-test needs it: no network, no capability, nothing writable."""

    def __init__(self, client: docker.DockerClient, info: Mapping[str, Any], home: Home, digest: str) -> None:
        self._client, self._info, self._home = client, info, home
        self.digest = digest

    def run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        """Run to the end; see `selftest.Runner`."""
        requests_ = self._device_requests() if gpu else None
        with docker_errors("run the self-test"):
            container = self._client.containers.create(
                self.digest,
                list(argv),
                network_mode="none",
                read_only=True,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                tmpfs={"/tmp": _TMPFS},  # noqa: S108 -- in the container
                shm_size="2g",
                device_requests=requests_ or [],
                labels={LABEL + "selftest": "1"},
            )
            try:
                container.start()
                return self._finish(container, argv, timeout)
            finally:
                with suppress(NotFound):
                    container.remove(force=True, v=True)

    def _finish(self, container: Container, argv: Sequence[str], timeout: float) -> process.Completed:
        try:
            status = container.wait(timeout=timeout)["StatusCode"]
        except _SLOW:
            raise process.ProcessTimeout(argv, timeout) from None
        except requests.exceptions.ConnectionError as error:
            # Some versions of requests call a read that timed out in the middle a broken connection.
            if "timed out" in str(error).lower():
                raise process.ProcessTimeout(argv, timeout) from None
            raise
        out = container.logs(stdout=True, stderr=False)
        err = container.logs(stdout=False, stderr=True)
        return process.Completed(int(status), out, err)

    def gpu_missing(self) -> str | None:
        """Return why no GPU can be handed in, or None."""
        if self._device_requests():
            return None
        return f"this Docker has no nvidia runtime, and no CDI file for {KIND}"

    def _device_requests(self) -> list[DeviceRequest]:
        """All GPUs: through NVIDIA's runtime, as ``--gpus all`` does, else by CDI."""
        if "nvidia" in (self._info.get("Runtimes") or {}):
            return [DeviceRequest(count=-1, capabilities=[["gpu"]])]
        folders = [Path(folder) for folder in self._info.get("CDISpecDirs") or ()]
        if folders and has_cdi([*folders, *CDI_FOLDERS]):
            return [DeviceRequest(driver="cdi", device_ids=[f"{KIND}=all"])]
        return []


def connect() -> docker.DockerClient:
    """Return a client of the daemon that the docker command would use. Raises `HostError`."""
    try:
        client = docker.from_env(version="auto", timeout=600, use_ssh_client=True)
        client.ping()
    except (DockerException, requests.exceptions.RequestException, OSError, ValueError) as error:
        raise HostError(
            f"no Docker daemon answers: {_text(error)}",
            hint="start Docker, or set DOCKER_HOST or the docker context; `--engine oci` needs no daemon",
        ) from None
    return client


def has_buildx() -> bool:
    """Whether the docker command is here and has buildx."""
    program = process.which("docker")
    return program is not None and process.run([program, "buildx", "version"], check=False).returncode == 0


def _driver(builder: str) -> str:
    """Return the driver of a builder. Raises `HostError` when there is no such builder."""
    command = [process.require("docker", "to build with BuildKit"), "buildx", "inspect", builder]
    done = process.run(command, check=False)
    found = re.search(r"^Driver:\s+(\S+)$", done.stdout.decode("utf-8", "replace"), re.MULTILINE)
    if done.returncode != 0 or found is None:
        raise HostError(
            f"--builder {builder}: {process.tail(done.stderr or done.stdout)}",
            hint="`docker buildx ls` lists the builders",
        )
    return found[1]


@contextmanager
def docker_errors(what: str) -> Iterator[None]:
    """Turn what the daemon, or the way to it, says into `EngineError`."""
    try:
        yield
    except APIError as error:
        raise failures.refused("Docker", what, str(error.explanation or error)) from None
    except _GONE as error:
        raise EngineError(
            f"Docker is gone: it did not answer when asked to {what} ({_text(error)})",
            hint="start it again and repeat the command; no image was named",
        ) from None
    except (DockerException, requests.exceptions.RequestException) as error:
        raise failures.refused("Docker", what, _text(error)) from None


def _build_failed(text: str) -> BuildError | EngineError:
    return failures.build_failed("Docker", text)


def _text(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__
