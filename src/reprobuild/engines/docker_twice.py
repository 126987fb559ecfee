"""Run a program under the recorder of ``twice`` through Docker, which may be on another machine.

The recorder goes into the container's own layer. A folder that the program may write to becomes a volume of
the daemon's, overlayfs over the folder; the views' own files lie in another volume, which a container that is
never started gives to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import docker
from docker.errors import NotFound
from docker.models.containers import Container
from docker.types import DriverConfig, LogConfig, Mount

from ..host import process
from ..host.limits import Limits
from ..host.sandbox import Bind
from ..oci.store import Image
from ..oci.stream import CHUNK, from_chunks
from ..render.labels import LABEL
from ..twice.runs import RECORDS, RanProgram, RecordedRun
from . import twice_mounts
from .docker_client import connect, docker_errors
from .docker_runner import DockerRunner, Output
from .protocols import RunOptions

_RUN = LABEL + "twice"
"""The label of both containers."""
_TMPFS = "rw,exec,nosuid,nodev,mode=1777"
_REMOVED = 2
"""In the daemon's list of changes: a path that is gone."""


def recorded(runner: DockerRunner, image: Image, argv: Sequence[str], how: RunOptions) -> RecordedRun:
    """Return what runs a command as `protocols.Recorder` says. The image's own entry point is left out."""
    site = twice_mounts.labelled_site(image.labels)
    folders = [bind for bind in how.binds if bind.writable and bind.source.is_dir()]
    files = [bind for bind in how.binds if bind.writable and not bind.source.is_dir()]
    command = twice_mounts.with_init(argv, site)

    def run(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        # A client of its own: runs may go on at once, and a connection is no thread's to share.
        with (
            docker_errors("run a program"),
            closing(connect()) as client,
            _views(client, folders, runner) as views,
        ):
            mounts = [
                Mount(bind.destination, str(bind.source), type="bind", read_only=True)
                for bind in how.binds
                if not bind.writable
            ]
            for index, bind in enumerate(folders):
                lower, upper, work = twice_mounts.overlay_options(bind, index, views[1], folder)
                options = {"type": "overlay", "device": "overlay"}
                options["o"] = f"lowerdir={lower},upperdir={upper},workdir={work}"
                driver = DriverConfig("local", options)
                mounts.append(
                    Mount(bind.destination, None, type="volume", no_copy=True, driver_config=driver)
                )
            container = client.containers.create(
                runner.digest,
                command[1:],
                entrypoint=command[:1],
                environment={
                    **(runner.gpu_variables() if how.gpu is not None else {}),
                    **how.env,
                    **settings,
                    "REPROBUILD_TWICE": twice_mounts.IN_CONTAINER,
                },
                mounts=mounts,
                network_mode="host" if how.network else "none",
                hostname=twice_mounts.HOSTNAME,
                extra_hosts={twice_mounts.HOSTNAME: "127.0.0.1"},  # launchers look it up
                working_dir=how.workdir,
                user=how.user,
                cap_drop=["ALL"],
                cap_add=list(twice_mounts.CAPABILITIES),
                security_opt=["no-new-privileges"],
                tmpfs={"/tmp": _TMPFS},  # noqa: S108 -- in the container
                shm_size="2g",
                device_requests=runner.device_requests() if how.gpu is not None else [],
                labels={_RUN: "1"},
                log_config=LogConfig(type=LogConfig.types.NONE),
                **runner.limits(how.limits or Limits()),
            )
            try:
                container.put_archive("/", twice_mounts.recorder_tar(site, files))
                ran = _ran(runner, container, command, seconds)
                with _archive(container, twice_mounts.IN_CONTAINER) as tar:
                    twice_mounts.unpack_written(tar, folder / RECORDS, skip=1)
                changes = {str(each["Path"]): each["Kind"] == _REMOVED for each in container.diff() or ()}
                twice_mounts.keep_changed(changes, folder / "changed", lambda path: _archive(container, path))
                written = [(folder / "changed", "/")]
                if folders:
                    with _archive(views[0], twice_mounts.VIEWS) as tar:
                        twice_mounts.unpack_written(tar, folder / "views", skip=1, views=True)
                for index, bind in enumerate(folders):
                    written.append((folder / "views" / str(index) / "upper", bind.destination))
            finally:
                with suppress(NotFound):
                    container.remove(force=True, v=True)
        return RanProgram(status=ran[0], stdout=ran[1], stderr=ran[2], written=written)

    return run


def _ran(
    runner: DockerRunner, container: Container, command: Sequence[str], seconds: float | None
) -> tuple[int | None, bytes, bytes]:
    status: int | None
    with Output(container) as output:
        container.start()
        try:
            status = runner.wait(container, command, seconds)
        except process.ProcessTimeout:
            status = None
            container.kill()
    return (status, *output.written())


@contextmanager
def _views(
    client: docker.DockerClient, folders: Sequence[Bind], runner: DockerRunner
) -> Iterator[tuple[Any, str]]:
    """Yield a container that is never started and has the views' own folders, and where the daemon keeps
    these."""
    if not folders:
        yield None, ""
        return
    # Left by a run that was killed. The daemon decides by its own clock.
    client.containers.prune(filters={"label": _RUN, "until": "48h"})
    keeper = client.containers.create(
        runner.digest,
        ["-"],
        entrypoint=[],
        network_mode="none",
        mounts=[Mount(twice_mounts.VIEWS, None, type="volume", no_copy=True)],
        labels={_RUN: "1"},
    )
    try:
        keeper.put_archive(twice_mounts.VIEWS, twice_mounts.views_tar(folders))
        keeper.reload()
        [place] = [each["Source"] for each in keeper.attrs["Mounts"]]
        yield keeper, str(place)
    finally:
        with suppress(NotFound):
            keeper.remove(force=True, v=True)


@contextmanager
def _archive(container: Container, path: str) -> Iterator[IO[bytes]]:
    chunks, _ = container.get_archive(path, chunk_size=CHUNK)
    with closing(cast("Any", chunks)):
        yield from_chunks(chunks)
