"""The Podman engine: builds the rendered Dockerfile with the podman command.

So the user's own settings hold: containers.conf, storage.conf, a connection to another machine.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import EngineError, HostError, ImageError
from ..host import process
from ..host.home import storage_errors
from ..host.host import Host
from ..host.limits import Limits, of_steps
from ..host.machine import identity
from ..lock.model import Lock
from ..oci.extract_file import file_of_tar
from ..oci.file_tree import ImageTree, read_root
from ..oci.merge_layers import Keep
from ..oci.store import image_name
from ..render.labels import LABEL
from ..twice.recorded_run import RecordedRun
from . import engine_errors
from .container_engine import ContainerEngine, ContainerImages, Facts
from .container_twice import recorded
from .gpu import gpu_missing
from .podman_options import gpu_options, limit_options
from .podman_root import opened_file, opened_root, podman_errors
from .podman_twice import twice_in_podman
from .protocols import EngineName, RunOptions, require_gpu

_NO_IMAGE = re.compile(
    r"no such (image|object)|image not known|unable to find|failed to find image|invalid reference format|"
    r"must not be more than 255 characters",
    re.IGNORECASE,
)
_NOT_STARTED = (125, 126, 127)
"""Podman's own statuses when it could not start a container (man podman-run, "Exit Status")."""

_NO_FILE = re.compile(r"could not be found on container|no such file or directory", re.IGNORECASE)


class PodmanEngine(ContainerEngine):
    """Builds, keeps and runs images with Podman. Raises `HostError` if it is missing or broken."""

    kind: EngineName = "podman"
    built_by: EngineName = "podman"
    keeps_manifests = False
    takes_oci = True

    def __init__(self, host: Host) -> None:
        self._host = host
        program = process.require("podman", "for --engine podman")
        try:
            said = process.run([program, "info", "--format", "json"]).stdout
            self._facts: Mapping[str, Any] = dict(json.loads(said)["host"])
        except (process.ProcessFailed, ValueError, KeyError, TypeError) as error:
            why = error.tail if isinstance(error, process.ProcessFailed) else "it does not describe itself"
            raise HostError(
                f"podman does not work on this machine: {why}",
                hint="`podman info --format json` must work; `--engine oci` needs no other program",
            ) from None
        self.images = PodmanImages(program)
        self._program = program

    def check(self, *, gpu: bool) -> None:
        """Raise `HostError` if ``gpu`` is set and no GPU can be passed in."""
        if gpu:
            require_gpu(gpu_missing())

    def build_context(self, lock: Lock, context: Path, answer: Path) -> str:
        """Build a folder: the same lock gives the same digest; see `ContainerEngine`."""
        command = [
            *(self._program, "build", "--network=none", "--layers=false", "--format=oci"),
            # By digest: what is pulled for it is what the lock names.
            "--pull=never" if lock.base is None else "--pull=missing",
            *(f"--timestamp={lock.epoch}", f"--platform={lock.platform}"),
            # What the build leaves out of its own accord differs by version: name what must not be there.
            *("--identity-label=false",) * self._knows("--identity-label"),
            *("--iidfile", str(answer), "--quiet", str(context)),
        ]
        try:
            process.run(command)
        except process.ProcessFailed as failed:
            raise engine_errors.build_failed("Podman", failed.tail) from None
        return answer.read_text().strip()

    def _knows(self, option: str) -> bool:
        help_ = process.run([self._program, "build", "--help"], check=False)
        return option.encode() in help_.stdout

    def runner(self, digest: str) -> PodmanRunner:
        """Return what runs programs in an image for the self-test."""
        return PodmanRunner(self._program, self._host, self._facts, digest)

    def recorded(self, reference: str, argv: Sequence[str], how: RunOptions) -> RecordedRun:
        """Return what runs a command under the recorder of ``twice``; see `protocols.Recorder`."""
        image = self.images.find(reference)
        return recorded(partial(twice_in_podman, self._program, image.digest, how), image, argv, how)

    @property
    def pulled(self) -> None:
        """None: Podman reads a folder as fast."""

    @property
    def load_folder(self) -> Callable[[Path], None] | None:
        """What loads from a folder, where Podman is on this machine; an archive it first writes out twice."""
        return None if self._facts.get("serviceIsRemote") else self._pull_folder

    def _pull_folder(self, layout: Path) -> None:
        # Podman 4.3 names the image by the path, which so has to be a name, and nobody else's; and it takes
        # what is behind a colon in the path for a name.
        name = f"reprobuild-{secrets.token_hex(8)}"
        with storage_errors(layout):
            (layout / name).symlink_to(".")
        with podman_errors("load an image"):
            said = process.run([self._program, "pull", "--quiet", f"oci:{name}"], cwd=layout)
        # No name before it is tested. Later versions of Podman do not give it this one.
        command = [self._program, "untag", said.stdout.decode().strip(), f"localhost/{name}:latest"]
        process.run(command, check=False)

    def load(self, archive: Iterator[bytes]) -> None:
        """Load an image archive."""

        def write(out: Any) -> None:
            for chunk in archive:
                out(chunk)

        with podman_errors("load an image"):
            process.feed([self._program, "load", "--quiet"], write)


_UNTOLD = ("OnBuild", "Shell")
"""Settings of Docker's form of an image that ``podman image inspect`` does not show."""


class PodmanImages(ContainerImages):
    """Podman's images."""

    def __init__(self, program: str) -> None:
        self._program = program

    def inspect(self, references: Sequence[str]) -> Sequence[Facts]:
        """Query Podman for images; see `ContainerImages`."""
        command = [self._program, "image", "inspect", "--", *(y.removeprefix("sha256:") for y in references)]
        done = process.run(command, check=False)
        if done.returncode != 0:
            text = process.tail(done.stderr)
            if not _NO_IMAGE.search(text):
                raise engine_errors.refused("Podman", "look for an image", text)
            raise ImageError(f"Podman has no image {references[0]!r}", hint="`podman images` lists them")
        found: Sequence[Facts] = json.loads(done.stdout)
        return found

    def labelled(self, label: str) -> Sequence[str]:
        """Return the IDs of the images with a label."""
        command = [self._program, "images", "--quiet", "--no-trunc", "--filter", f"label={label}"]
        with podman_errors("look for an image"):
            return sorted({*process.run(command).stdout.decode().split()})

    def name(self, digest: str, name: str) -> None:
        """Name an image; see `protocols.Images`."""
        with podman_errors("name an image"):
            process.run([self._program, "tag", digest.removeprefix("sha256:"), image_name(name)])

    def read_tree(self, facts: Facts, where: str, config: Mapping[str, Any], keep: Keep) -> ImageTree:
        """Return the files of an image."""
        if health := facts.get("Healthcheck"):  # of Docker's form, which OCI's section has no key for
            config = {**config, "Healthcheck": health}
        with podman_errors("read an image"), opened_root(self._program, facts["Id"]) as tar:
            return replace(read_root(tar, where, config, keep=keep), untold=_UNTOLD)

    def read_file(self, digest: str, path: str) -> bytes | None:
        """Return the content of a file through ``podman cp``."""
        try:
            with opened_file(self._program, digest.removeprefix("sha256:"), path) as tar:
                return file_of_tar(tar, path.rpartition("/")[2])
        except process.ProcessFailed as failed:
            if _NO_FILE.search(failed.tail):
                return None
            raise engine_errors.refused("Podman", "read an image", failed.tail) from None


class PodmanRunner:
    """Runs programs in one image as the self-test needs it: no network, no capability, nothing writable."""

    def __init__(self, program: str, host: Host, facts: Mapping[str, Any], digest: str) -> None:
        self._program, self._host, self._facts = program, host, facts
        self.digest = digest

    def run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        """Run to the end; see `selftest.run.Runner`."""
        limits = self._limits()
        done = self._run(argv, limits, timeout=timeout, gpu=gpu)
        if limits and done.returncode in _NOT_STARTED and b"cgroup" in done.stderr:
            self._host.console.step("Podman makes no control groups here, so it does not limit the self-test")
            done = self._run(argv, [], timeout=timeout, gpu=gpu)
        if done.returncode in _NOT_STARTED:
            raise EngineError(f"Podman could not start the self-test: {process.tail(done.stderr)}")
        return done

    def _limits(self) -> list[str]:
        """Return the options for the limits of a step, as far as this Podman can enforce them."""
        limits = of_steps(machine=self._facts.get("memTotal"))
        known = self._facts.get("cgroupControllers") or ()
        return limit_options(
            Limits(
                memory=limits.memory if "memory" in known else None,
                processes=limits.processes if "pids" in known else None,
            )
        )

    def _run(
        self, argv: Sequence[str], limits: Sequence[str], *, timeout: float, gpu: bool
    ) -> process.Completed:
        with self._host.home.scratch("podman") as folder:
            container = folder / "container"
            command = [
                *(self._program, "run", f"--label={LABEL}selftest=1", "--rm", "--cidfile", str(container)),
                # Its output comes to us; a second place on the disk would have no bound.
                *("--pull=never", "--log-driver=none"),
                *("--network=none", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"),
                *("--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777", "--shm-size=2g"),
                # Podman ends it also when this process was killed and cannot.
                f"--timeout={int(timeout) + 30}",
                *limits,
                *(gpu_options(self._program, self.digest) if gpu else ()),
                # Its own entry point, if a derived image has one, would run in the program's place.
                f"--entrypoint={argv[0]}",
                *(self.digest.removeprefix("sha256:"), *argv[1:]),
            ]
            try:
                # conmon leaves an empty file in the folder that it starts in when a container's memory ends
                # (https://github.com/containers/conmon/issues/504).
                return process.run(command, cwd=folder, timeout=timeout, check=False)
            finally:
                if container.exists():
                    remove = [self._program, "rm", "--force", "--ignore", "--time=0"]
                    process.run([*remove, container.read_text().strip()], check=False)

    def gpu_missing(self) -> str | None:
        """Return why no GPU can be passed in, or None."""
        return gpu_missing()

    def machine(self) -> str | None:
        """Return what names this machine; None for a remote Podman."""
        return None if self._facts.get("serviceIsRemote") else identity()
