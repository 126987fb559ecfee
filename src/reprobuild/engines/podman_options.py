"""Options of Podman that hold a container to limits and pass the GPUs in."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..host import process
from ..host.limits import Limits
from ..host.machine import visible_devices
from .cdi import KIND
from .gpu import gpu_access, has_cdi


def limit_options(limits: Limits) -> list[str]:
    """Return the options that enforce a container's limits."""
    found = [] if limits.memory is None else [f"--memory={limits.memory}b"]
    return found if limits.processes is None else [*found, f"--pids-limit={limits.processes}"]


def gpu_options(podman: str, digest: str) -> list[str]:
    """Return the options that pass the GPUs in.

    By CDI if there is a file for it, else the device nodes and the driver's libraries. SELinux's label of a
    container may use neither (NVIDIA's page "Support for Container Device Interface" says so, too).
    """
    unlabelled = "--security-opt=label=disable"
    if has_cdi():
        return [unlabelled, f"--device={KIND}=all", *variables(visible_devices())]
    access = gpu_access()
    if isinstance(access, str):
        return []
    return [
        unlabelled,
        *(f"--device={device.source}:{device.path}" for device in access.devices),
        *(f"--volume={bind.source}:{bind.destination}:ro" for bind in access.binds),
        *variables(access.env_over(_image_variables(podman, digest))),
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


def variables(env: Mapping[str, str]) -> list[str]:
    """Return the options that set some variables."""
    return [f"--env={name}={value}" for name, value in env.items()]
