"""Run a program under the recorder of ``twice`` with Podman, which may be on another machine.

The views' own folders lie in a volume, which Podman exports as a tar.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from ..errors import EngineError
from ..host import process
from ..host.limits import Limits
from ..render.labels import LABEL
from . import engine_errors, twice_mounts
from .container_twice import TMPFS, Views
from .podman_options import gpu_options, limit_options, variables
from .protocols import RunOptions

_NOT_STARTED = (125,)
"""Podman's own status when it could not start a container (man podman-run, "Exit Status")."""


@dataclass(frozen=True, slots=True)
class PodmanTwice:
    """A run through Podman; see `container_twice.TwiceEngine`."""

    podman: str
    digest: str
    how: RunOptions

    @contextmanager
    def views(self, tar: bytes) -> Iterator[Views]:
        """Make folders in a volume."""
        podman, name = self.podman, _new_name()
        with process.at_the_end([podman, "volume", "rm", "--force", name]):
            process.run([podman, "volume", "create", f"--label={LABEL}twice=1", name])
            process.run([podman, "volume", "import", name, "-"], stdin=tar)
            place = process.run([podman, "volume", "inspect", "--format", "{{.Mountpoint}}", name]).stdout
            read = partial(process.stream, [podman, "volume", "export", name])
            yield Views(place.decode("utf-8", "surrogateescape").strip(), 0, read)

    @contextmanager
    def container(
        self, command: Sequence[str], env: Mapping[str, str], overlays: Mapping[str, tuple[str, str, str]]
    ) -> Iterator[_Container]:
        """Create a container."""
        podman, name = self.podman, _new_name()
        options = [
            *self._options(),
            *(
                f"--volume={lower}:{destination}:O,upperdir={upper},workdir={work}"
                for destination, (lower, upper, work) in overlays.items()
            ),
            *variables(env),
        ]
        image = [f"--entrypoint={command[0]}", self.digest.removeprefix("sha256:"), *command[1:]]
        remove = [podman, "rm", "--force", "--ignore", "--time=0", "--volumes", name]
        with process.at_the_end(remove):
            process.run([podman, "create", f"--name={name}", *options, *image])
            yield _Container(podman, name)

    def _options(self) -> list[str]:
        how = self.how
        return [
            *("--pull=never", "--log-driver=none", f"--label={LABEL}twice=1"),
            *([f"--user={how.user}"] if how.user is not None else ()),
            f"--add-host={twice_mounts.HOSTNAME}:127.0.0.1",  # launchers look it up
            *(f"--hostname={twice_mounts.HOSTNAME}", f"--network={'host' if how.network else 'none'}"),
            *("--cap-drop=all", *(f"--cap-add={name}" for name in twice_mounts.CAPABILITIES)),
            *("--security-opt=no-new-privileges", "--shm-size=2g", f"--tmpfs=/tmp:{TMPFS}"),
            *([f"--workdir={how.workdir}"] if how.workdir is not None else ()),
            *(gpu_options(self.podman, self.digest) if how.gpu is not None else ()),
            *limit_options(how.limits or Limits()),
            *(
                _csv("--mount=type=bind", f"source={b.source}", f"destination={b.destination}", "readonly")
                for b in how.binds
                if not b.writable
            ),
        ]


@contextmanager
def twice_in_podman(podman: str, digest: str, how: RunOptions) -> Iterator[PodmanTwice]:
    """Begin a run."""
    try:
        yield PodmanTwice(podman, digest, how)
    except process.ProcessFailed as failed:
        raise engine_errors.refused("Podman", "run a program", failed.tail) from None


def _csv(*fields: str) -> str:
    """Return a line of CSV, which ``--mount`` reads: a path may have a comma."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def _new_name() -> str:
    return f"reprobuild-twice-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class _Container:
    podman: str
    name: str

    def put(self, tar: bytes) -> None:
        process.run([self.podman, "cp", "-", f"{self.name}:/"], stdin=tar)

    def run(self, folder: Path, seconds: float | None) -> tuple[int | None, bytes, bytes]:
        start = [self.podman, "start", "--attach", self.name]
        try:
            # conmon leaves an empty file in the folder that it starts in when a container's memory ends
            # (https://github.com/containers/conmon/issues/504).
            done = process.run(start, cwd=folder, timeout=seconds, check=False)
        except process.ProcessTimeout:
            return None, b"", b""
        else:
            if done.returncode in _NOT_STARTED:
                raise EngineError(f"Podman could not start the program: {process.tail(done.stderr)}")
            return done.returncode, done.stdout, done.stderr
        finally:
            # It goes on where only its output was stopped.
            process.run([self.podman, "stop", "--ignore", "--time=0", self.name], check=False)

    def read(self, path: str) -> AbstractContextManager[IO[bytes]]:
        return process.stream([self.podman, "cp", f"{self.name}:{path}", "-"])

    def changes(self) -> Mapping[str, bool]:
        done = process.run([self.podman, "container", "diff", "--format=json", self.name])
        found = json.loads(done.stdout)
        mounts = [self.podman, "container", "inspect", "--format={{json .Mounts}}", self.name]
        # Podman makes an empty file where it mounts one, and refuses to copy it out.
        points = {str(each["Destination"]) for each in json.loads(process.run(mounts).stdout)}
        return {
            str(path): kind == "deleted"
            for kind, paths in found.items()
            for path in paths
            if path not in points
        }
