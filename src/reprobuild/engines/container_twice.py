"""Run a program under the recorder of ``twice`` in a container of Docker or Podman, on any machine.

The recorder goes into the container's own layer. Over a folder that the program may write to lies overlayfs,
whose own folders, the views, are in a volume; what was written comes back as tars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from ..oci.store import Image
from ..twice.recorded_run import RECORDS, RanProgram, RecordedRun
from . import twice_mounts
from .protocols import RunOptions

TMPFS = "rw,exec,nosuid,nodev,mode=1777"
"""Options of ``/tmp``."""


class TwiceContainer(Protocol):
    """A container that is created and has not started."""

    def put(self, tar: bytes) -> None:
        """Write a tar's files, whose paths begin at ``/``."""

    def run(self, folder: Path, seconds: float | None) -> tuple[int | None, bytes, bytes]:
        """Run it to its end; return its status, None at the time limit, and its two outputs.

        ``folder`` is the run's own on this machine.
        """

    def read(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Open a tar of a path."""

    def changes(self) -> Mapping[str, bool]:
        """Return the paths that it changed, and whether each is removed."""


@dataclass(frozen=True, slots=True)
class Views:
    """The folders of the views, as the engine sees them."""

    place: str
    """Where they are on the engine's machine."""
    skip: int
    """Number of leading path components in the tar to strip."""
    read: Callable[[], AbstractContextManager[IO[bytes]]]
    """Opens a tar of what is in them."""


class TwiceEngine(Protocol):
    """Operations of one run that differ between Docker and Podman."""

    def views(self, tar: bytes) -> AbstractContextManager[Views]:
        """Make the folders that a tar has, for as long as the run lasts."""

    def container(
        self, command: Sequence[str], env: Mapping[str, str], overlays: Mapping[str, tuple[str, str, str]]
    ) -> AbstractContextManager[TwiceContainer]:
        """Create a container; ``overlays``: lower, upper and work folder by the path in the container."""


def recorded(
    begin: Callable[[], AbstractContextManager[TwiceEngine]],
    image: Image,
    argv: Sequence[str],
    how: RunOptions,
) -> RecordedRun:
    """Return what runs a command as `protocols.Recorder` says. The image's own entry point is left out."""
    site = twice_mounts.labelled_site(image.labels)
    folders = [bind for bind in how.binds if bind.writable and bind.source.is_dir()]
    files = [bind for bind in how.binds if bind.writable and not bind.source.is_dir()]

    def run(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        variables = {**how.env, **settings, "REPROBUILD_TWICE": twice_mounts.IN_CONTAINER}
        started = twice_mounts.launched(argv, settings, site and twice_mounts.PYTHON)
        command = twice_mounts.with_init(started, site)
        written = [(folder / "changed", "/")]
        with (
            begin() as engine,
            engine.views(twice_mounts.views_tar(folders)) if folders else nullcontext() as views,
        ):
            overlays = {}
            for index, bind in enumerate(folders):
                place = views.place if views else ""
                overlays[bind.destination] = twice_mounts.overlay_options(bind, index, place, folder)
                written.append((folder / "views" / str(index) / "upper", bind.destination))
            with engine.container(command, twice_mounts.environment(variables), overlays) as container:
                container.put(twice_mounts.recorder_tar(site, files, variables))
                status, stdout, stderr = container.run(folder, seconds)
                with container.read(twice_mounts.IN_CONTAINER) as tar:
                    twice_mounts.unpack_written(tar, folder / RECORDS, skip=1)
                twice_mounts.keep_changed(container.changes(), folder / "changed", container.read)
            if views is not None:
                with views.read() as tar:
                    twice_mounts.unpack_written(tar, folder / "views", skip=views.skip, views=True)
        points = [bind.destination for bind in how.binds if bind not in files]
        return RanProgram(status=status, stdout=stdout, stderr=stderr, written=written, mount_points=points)

    return run
