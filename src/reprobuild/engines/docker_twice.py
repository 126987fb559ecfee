"""Run a program under the recorder of ``twice`` through Docker, which may be on another machine.

The views' own folders lie in a volume, which is read through a container that is never started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import docker
from docker.models.containers import Container
from docker.types import DriverConfig, LogConfig, Mount

from ..host import process
from ..host.limits import Limits
from ..oci.stream import CHUNK, from_chunks
from ..render.labels import LABEL
from . import twice_mounts
from .container_twice import TMPFS, Views
from .docker_client import connect, docker_errors
from .docker_runner import DockerRunner, Output, removed
from .protocols import RunOptions

_RUN = LABEL + "twice"
"""The label of both containers."""
_REMOVED = 2
"""In the daemon's list of changes: a path that is gone."""


@dataclass(frozen=True, slots=True)
class DockerTwice:
    """A run through Docker; see `container_twice.TwiceEngine`."""

    client: docker.DockerClient
    runner: DockerRunner
    how: RunOptions

    @contextmanager
    def views(self, tar: bytes) -> Iterator[Views]:
        """Make folders in a volume."""
        # Left by a run that was killed. The daemon decides by its own clock.
        self.client.containers.prune(filters={"label": _RUN, "until": "48h"})
        keeper = self.client.containers.create(
            self.runner.digest,
            ["-"],
            entrypoint=[],
            network_mode="none",
            mounts=[Mount(twice_mounts.VIEWS, None, type="volume", no_copy=True)],
            labels={_RUN: "1"},
        )
        with removed(keeper):
            keeper.put_archive(twice_mounts.VIEWS, tar)
            keeper.reload()
            [place] = [each["Source"] for each in keeper.attrs["Mounts"]]
            yield Views(str(place), 1, partial(_archive, keeper, twice_mounts.VIEWS))

    @contextmanager
    def container(
        self, command: Sequence[str], env: Mapping[str, str], overlays: Mapping[str, tuple[str, str, str]]
    ) -> Iterator[_Container]:
        """Create a container."""
        how, runner = self.how, self.runner
        mounts = [
            Mount(bind.destination, str(bind.source), type="bind", read_only=True)
            for bind in how.binds
            if not bind.writable
        ]
        for destination, (lower, upper, work) in overlays.items():
            options = {"type": "overlay", "device": "overlay"}
            options["o"] = f"lowerdir={lower},upperdir={upper},workdir={work}"
            driver = DriverConfig("local", options)
            mounts.append(Mount(destination, None, type="volume", no_copy=True, driver_config=driver))
        container = self.client.containers.create(
            runner.digest,
            list(command[1:]),
            entrypoint=list(command[:1]),
            environment={**(runner.gpu_variables() if how.gpu is not None else {}), **env},
            mounts=mounts,
            network_mode="host" if how.network else "none",
            hostname=twice_mounts.HOSTNAME,
            extra_hosts={twice_mounts.HOSTNAME: "127.0.0.1"},  # launchers look it up
            working_dir=how.workdir,
            user=how.user,
            cap_drop=["ALL"],
            cap_add=list(twice_mounts.CAPABILITIES),
            security_opt=["no-new-privileges"],
            tmpfs={"/tmp": TMPFS},  # noqa: S108 -- in the container
            shm_size="2g",
            device_requests=runner.device_requests() if how.gpu is not None else [],
            labels={_RUN: "1"},
            log_config=LogConfig(type=LogConfig.types.NONE),
            **runner.limits(how.limits or Limits()),
        )
        with removed(container):
            yield _Container(container, runner, command)


@contextmanager
def twice_in_docker(runner: DockerRunner, how: RunOptions) -> Iterator[DockerTwice]:
    """Begin a run, with a client of its own: runs may go on at once, each with its connection."""
    with docker_errors("run a program"), closing(connect()) as client:
        yield DockerTwice(client, runner, how)


@dataclass(frozen=True, slots=True)
class _Container:
    made: Container
    runner: DockerRunner
    command: Sequence[str]

    def put(self, tar: bytes) -> None:
        self.made.put_archive("/", tar)

    def run(self, folder: Path, seconds: float | None) -> tuple[int | None, bytes, bytes]:  # noqa: ARG002 -- Podman's needs it
        status: int | None
        with Output(self.made) as output:
            self.made.start()
            try:
                status = self.runner.wait(self.made, self.command, seconds)
            except process.ProcessTimeout:
                status = None
                self.made.kill()
        return (status, *output.written())

    def read(self, path: str) -> AbstractContextManager[IO[bytes]]:
        return _archive(self.made, path)

    def changes(self) -> Mapping[str, bool]:
        return {str(each["Path"]): each["Kind"] == _REMOVED for each in self.made.diff() or ()}


@contextmanager
def _archive(container: Container, path: str) -> Iterator[IO[bytes]]:
    chunks, _ = container.get_archive(path, chunk_size=CHUNK)
    with closing(cast("Any", chunks)):
        yield from_chunks(chunks)
