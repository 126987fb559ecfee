"""Run programs in an image through Docker, as the self-test needs it."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, LogConfig

from ..host import process
from ..host.limits import Limits, of_steps
from ..host.machine import identity, visible_devices
from ..host.stderr_listener import hearing
from ..render.labels import LABEL
from .cdi import CDI_FOLDERS, KIND
from .docker_client import GONE, docker_errors, is_local, raise_if_gone
from .gpu import has_cdi

_LAST_SECONDS = 60
"""Time limit for the last output of an exited container."""

_TMPFS = "rw,exec,nosuid,nodev,mode=1777"
_KILLED = 128
"""Statuses from here on mean that a signal ended the program; a daemon that shuts down sends one."""
_SLOW = (requests.exceptions.ReadTimeout, requests.exceptions.ConnectTimeout)


class Output:
    """Read a container's whole output; stop the container above `process.OUTPUT_LIMIT`."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._found = (bytearray(), bytearray())
        self._hear = hearing()
        self._stream = container.attach(stdout=True, stderr=True, stream=True, demux=True)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        """Start reading."""
        self._thread.start()
        return self

    def __exit__(self, *failed: object) -> None:
        """Read to the end, and let go of the connection."""
        self._thread.join(_LAST_SECONDS if failed[0] is None else 0)
        # Now nothing keeps the daemon from removing the container: it waits for who is to take the output.
        with suppress(OSError, DockerException):
            self._stream.close()
        # That only ends the stream; the SDK leaves the connection open, and hands it out nowhere else
        # (https://github.com/docker/docker-py/issues/3282).
        self._stream._response.close()  # type: ignore[attr-defined]  # the SDK keeps it to itself

    def written(self) -> tuple[bytes, bytes]:
        """Return standard output and standard error."""
        out, err = self._found
        if self._is_over():
            err.extend(process.stopped_at(process.OUTPUT_LIMIT))
        return bytes(out[: process.OUTPUT_LIMIT]), bytes(err[-process.OUTPUT_LIMIT :])

    def _is_over(self) -> bool:
        return max(map(len, self._found)) > process.OUTPUT_LIMIT

    def _read(self) -> None:
        # A broken connection is told by the call that waits for the end.
        with suppress(*GONE, APIError, OSError, ValueError):
            for parts in self._stream:
                if self._is_over():
                    continue  # read all the same: a container whose output nobody takes cannot end
                for part, kept in zip(parts, self._found, strict=True):
                    kept.extend(part or b"")
                self._hear(self._found[1])
                if self._is_over():
                    threading.Thread(target=self._kill, daemon=True).start()

    def _kill(self) -> None:
        with suppress(*GONE, APIError):
            self._container.kill()


@contextmanager
def removed(container: Container) -> Iterator[None]:
    """Remove a container and its volumes after the block."""
    try:
        yield
    finally:
        with suppress(NotFound):
            container.remove(force=True, v=True)


class DockerRunner:
    """Runs programs in one image as the self-test needs it: no network, no capability, nothing writable."""

    def __init__(self, client: docker.DockerClient, info: Mapping[str, Any], digest: str) -> None:
        self._client, self._info = client, info
        self.digest = digest

    def run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        """Run to the end; see `selftest.run.Runner`."""
        requests_ = self.device_requests() if gpu else None
        with docker_errors("run the self-test"):
            container = self._client.containers.create(
                self.digest,
                list(argv[1:]),
                # Its own entry point, if a derived image has one, would run in the program's place.
                entrypoint=list(argv[:1]),
                network_mode="none",
                read_only=True,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                tmpfs={"/tmp": _TMPFS},  # noqa: S108 -- in the container
                shm_size="2g",
                device_requests=requests_ or [],
                environment=self.gpu_variables() if requests_ else {},
                labels={LABEL + "selftest": "1"},
                **self.limits(of_steps(machine=self._info.get("MemTotal") or None)),
                # Its output is read as it comes, and held nowhere else.
                log_config=LogConfig(type=LogConfig.types.NONE),
            )
            with removed(container):
                with Output(container) as output:
                    container.start()
                    status = self.wait(container, argv, timeout)
                return process.Completed(status, *output.written())

    def limits(self, limits: Limits) -> dict[str, Any]:
        """Return the options that enforce a container's limits, as far as this daemon can enforce them."""
        found: dict[str, Any] = {}
        if limits.memory is not None and self._info.get("MemoryLimit"):
            found["mem_limit"] = limits.memory
            if self._info.get("SwapLimit"):
                found["memswap_limit"] = limits.memory  # of memory and swap together
        if limits.processes is not None and self._info.get("PidsLimit"):
            found["pids_limit"] = limits.processes
        return found

    def wait(self, container: Container, argv: Sequence[str], timeout: float | None) -> int:
        """Return the exit status of a container once it has ended. Raises `process.ProcessTimeout`."""
        try:
            status = int(container.wait(timeout=timeout)["StatusCode"])
        except _SLOW:
            raise process.ProcessTimeout(argv, timeout or 0) from None
        except requests.exceptions.ConnectionError as error:
            # Some versions of requests call a read that timed out in the middle a broken connection
            # (https://github.com/docker/docker-py/issues/1966).
            if "timed out" in str(error).lower():
                raise process.ProcessTimeout(argv, timeout or 0) from None
            raise
        if status >= _KILLED:
            raise_if_gone("run the self-test", f"it ended with status {status}")
        return status

    def gpu_missing(self) -> str | None:
        """Return why no GPU can be passed in, or None."""
        if self.device_requests():
            return None
        return f"this Docker has no nvidia runtime, and no CDI file for {KIND}"

    def machine(self) -> str | None:
        """Return what names this machine; None for a daemon that is elsewhere, or in a machine of its own."""
        here = is_local() and self._info.get("KernelVersion") == platform.release()
        return identity() if here else None

    def gpu_variables(self) -> dict[str, str]:
        """Return the caller's own choice of GPUs, which is one of this machine's."""
        return visible_devices() if is_local() else {}

    def device_requests(self) -> list[DeviceRequest]:
        """Return what passes all GPUs in: through NVIDIA's runtime, as ``--gpus all`` does, else by CDI."""
        if "nvidia" in (self._info.get("Runtimes") or {}):
            return [DeviceRequest(count=-1, capabilities=[["gpu"]])]
        folders = [Path(folder) for folder in self._info.get("CDISpecDirs") or ()]
        if folders and has_cdi([*folders, *CDI_FOLDERS]):
            return [DeviceRequest(driver="cdi", device_ids=[f"{KIND}=all"])]
        return []
