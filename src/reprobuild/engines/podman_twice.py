"""Run a program under the recorder of ``twice`` with Podman, which may be on another machine.

The recorder goes into the container's own layer. A folder that the program may write to is an overlay over
the folder; what is written lies in a volume, which Podman gives as a tar.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from ..errors import EngineError
from ..host import process
from ..host.limits import Limits
from ..host.machine import visible_devices
from ..host.sandbox import Bind
from ..oci.store import Image
from ..render.labels import LABEL
from ..twice.runs import RECORDS, RanProgram, RecordedRun
from . import engine_errors, twice_mounts
from .gpu import KIND, gpu_access, has_cdi
from .protocols import RunOptions

_NOT_STARTED = (125,)
"""Podman's own status when it could not start a container (man podman-run, "Exit Status")."""


def recorded(podman: str, image: Image, argv: Sequence[str], how: RunOptions) -> RecordedRun:
    """Return what runs a command as `protocols.Recorder` says. The image's own entry point is left out."""
    site = twice_mounts.labelled_site(image.labels)
    folders = [bind for bind in how.binds if bind.writable and bind.source.is_dir()]
    files = [bind for bind in how.binds if bind.writable and not bind.source.is_dir()]
    command = twice_mounts.with_init(argv, site)
    options = [
        *("--pull=never", "--log-driver=none", f"--label={LABEL}twice=1"),
        *([f"--user={how.user}"] if how.user is not None else ()),
        f"--add-host={twice_mounts.HOSTNAME}:127.0.0.1",  # launchers look it up
        *(f"--hostname={twice_mounts.HOSTNAME}", f"--network={'host' if how.network else 'none'}"),
        *("--cap-drop=all", *(f"--cap-add={name}" for name in twice_mounts.CAPABILITIES)),
        *("--security-opt=no-new-privileges", "--shm-size=2g"),
        "--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777",
        *([f"--workdir={how.workdir}"] if how.workdir is not None else ()),
        *(gpu_options(podman, image.digest) if how.gpu is not None else ()),
        *limit_options(how.limits or Limits()),
        *(
            f"--mount=type=bind,source={b.source},destination={b.destination},readonly"
            for b in how.binds
            if not b.writable
        ),
    ]

    def run(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        with _views(podman, folders) as views:
            places = [*options]
            for index, bind in enumerate(folders):
                lower, upper, work = twice_mounts.overlay_options(bind, index, views[1], folder)
                places.append(f"--volume={lower}:{bind.destination}:O,upperdir={upper},workdir={work}")
            variables = {**how.env, **settings, "REPROBUILD_TWICE": twice_mounts.IN_CONTAINER}
            places += [f"--env={name}={value}" for name, value in variables.items()]
            places += [f"--entrypoint={command[0]}", image.digest.removeprefix("sha256:"), *command[1:]]
            with _container(podman, places) as name:
                process.run([podman, "cp", "-", f"{name}:/"], stdin=twice_mounts.recorder_tar(site, files))
                ran = _ran(podman, name, folder, seconds)
                with _copied(podman, name, twice_mounts.IN_CONTAINER) as tar:
                    twice_mounts.unpack_written(tar, folder / RECORDS, skip=1)
                twice_mounts.keep_changed(
                    _changes(podman, name), folder / "changed", lambda path: _copied(podman, name, path)
                )
            written = [(folder / "changed", "/")]
            if folders:
                with process.stream([podman, "volume", "export", views[0]]) as tar:
                    twice_mounts.unpack_written(tar, folder / "views", skip=0, views=True)
            for index, bind in enumerate(folders):
                written.append((folder / "views" / str(index) / "upper", bind.destination))
        return RanProgram(status=ran[0], stdout=ran[1], stderr=ran[2], written=written)

    def told(folder: Path, settings: Mapping[str, str], seconds: float | None) -> RanProgram:
        try:
            return run(folder, settings, seconds)
        except process.ProcessFailed as failed:
            raise engine_errors.refused("Podman", "run a program", failed.tail) from None

    return told


@contextmanager
def _container(podman: str, options: Sequence[str]) -> Iterator[str]:
    name = f"reprobuild-twice-{secrets.token_hex(8)}"
    remove = [podman, "rm", "--force", "--ignore", "--time=0", "--volumes", name]
    with process.at_the_end(remove):
        process.run([podman, "create", f"--name={name}", *options])
        yield name


@contextmanager
def _views(podman: str, folders: Sequence[Bind]) -> Iterator[tuple[str, str]]:
    """Yield a volume for the views' own folders, and where it is."""
    if not folders:
        yield "", ""
        return
    name = f"reprobuild-twice-{secrets.token_hex(8)}"
    with process.at_the_end([podman, "volume", "rm", "--force", name]):
        process.run([podman, "volume", "create", f"--label={LABEL}twice=1", name])
        process.run([podman, "volume", "import", name, "-"], stdin=twice_mounts.views_tar(folders))
        place = process.run([podman, "volume", "inspect", "--format", "{{.Mountpoint}}", name]).stdout
        yield name, place.decode("utf-8", "surrogateescape").strip()


def _ran(podman: str, name: str, folder: Path, seconds: float | None) -> tuple[int | None, bytes, bytes]:
    try:
        # conmon leaves an empty file in the folder that it starts in when a container's memory ends
        # (https://github.com/containers/conmon/issues/504).
        done = process.run([podman, "start", "--attach", name], cwd=folder, timeout=seconds, check=False)
    except process.ProcessTimeout:
        return None, b"", b""
    else:
        if done.returncode in _NOT_STARTED:
            raise EngineError(f"Podman could not start the program: {process.tail(done.stderr)}")
        return done.returncode, done.stdout, done.stderr
    finally:
        # It goes on where only its output was stopped.
        process.run([podman, "stop", "--ignore", "--time=0", name], check=False)


def _changes(podman: str, name: str) -> dict[str, bool]:
    found = json.loads(process.run([podman, "container", "diff", "--format=json", name]).stdout)
    listed = [(path, kind == "deleted") for kind, paths in found.items() for path in paths]
    return {str(path): removed for path, removed in listed}


def _copied(podman: str, name: str, path: str) -> AbstractContextManager[IO[bytes]]:
    return process.stream([podman, "cp", f"{name}:{path}", "-"])


def limit_options(limits: Limits) -> list[str]:
    """Return the options that hold a container to some limits."""
    found = [] if limits.memory is None else [f"--memory={limits.memory}b"]
    return found if limits.processes is None else [*found, f"--pids-limit={limits.processes}"]


def gpu_options(podman: str, digest: str) -> list[str]:
    """Return the options that pass the GPUs in.

    By CDI if there is a file for it, else the device nodes and the driver's libraries. SELinux's label of a
    container may use neither (NVIDIA's page "Support for Container Device Interface" says so, too).
    """
    unlabelled = "--security-opt=label=disable"
    if has_cdi():
        return [unlabelled, f"--device={KIND}=all", *_variables(visible_devices())]
    access = gpu_access()
    if isinstance(access, str):
        return []
    return [
        unlabelled,
        *(f"--device={device.source}:{device.path}" for device in access.devices),
        *(f"--volume={bind.source}:{bind.destination}:ro" for bind in access.binds),
        *_variables(access.env_over(_image_variables(podman, digest))),
    ]


def _image_variables(podman: str, digest: str) -> dict[str, str]:
    command = [
        podman,
        "image",
        "inspect",
        "--format={{json .Config.Env}}",
        "--",
        digest.removeprefix("sha256:"),
    ]
    listed = json.loads(process.run(command).stdout) or []
    return dict(line.partition("=")[::2] for line in listed)


def _variables(env: Mapping[str, str]) -> list[str]:
    return [f"--env={name}={value}" for name, value in env.items()]
