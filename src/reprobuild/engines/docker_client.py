"""Connection to a Docker daemon, with its failures as errors."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import docker
import requests
import urllib3
from docker.context import ContextAPI
from docker.errors import APIError, DockerException

from ..errors import HostError
from ..host import process
from . import engine_errors

_SOCKET = "unix:///var/run/docker.sock"
_LOCAL = ("unix://", "http+unix://")
_BUILDKIT = 40
"""Minor version of Docker 19.03's API, the first with a stable BuildKit."""
GONE = (
    requests.exceptions.ConnectionError,
    requests.exceptions.ChunkedEncodingError,
    # The SDK reads some answers past requests.
    urllib3.exceptions.HTTPError,
    ConnectionError,
)
"""Errors of a connection that broke."""


def connect() -> docker.DockerClient:
    """Return a client for the daemon that the docker command would use. Raises `HostError`."""
    try:
        _knock()
        client = docker.from_env(version="auto", timeout=600, use_ssh_client=True)
        client.ping()
    except (DockerException, requests.exceptions.RequestException, OSError, ValueError) as error:
        raise HostError(
            f"no Docker daemon answers: {_text(error)}",
            hint="start Docker, or set DOCKER_HOST or the docker context; `--engine oci` needs no daemon",
        ) from None
    return client


def _knock() -> None:
    """Raise OSError if nobody listens on the daemon's socket: the SDK would leave its own end open."""
    if is_local():
        _connected().close()


def _connected() -> socket.socket:
    """Return a connection to the daemon's socket on this machine. Raises OSError, which names it."""
    file = f"/{_address().partition('://')[2].lstrip('/')}"
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.connect(file)
    except OSError as error:
        probe.close()
        raise OSError(f"{file}: {error.strerror or error}") from None
    return probe


def _address(context: str | None = None) -> str:
    """Return the address of a context's daemon; by default that of DOCKER_HOST, else of the current context.

    ValueError: no such context.
    """
    if context in (None, "default") and (host := os.environ.get("DOCKER_HOST")):
        return host
    name = context or os.environ.get("DOCKER_CONTEXT")
    # The SDK uses the default for a context that does not exist.
    if name and ContextAPI.get_context(name) is None:
        raise ValueError(f"no Docker context {name!r}")
    return str(ContextAPI.kwargs_from_context(name).get("base_url") or _SOCKET)


def is_local() -> bool:
    """Whether the daemon's socket is on this machine."""
    return _address().startswith(_LOCAL)


def daemon_process() -> int | None:
    """Return the number of the process behind the daemon's socket; None where that is not root's or not seen.

    The daemon itself, or what started it and listens in its place; then both see the same files.
    """
    with suppress(OSError), _connected() as probe:
        pid, user, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return pid if pid > 0 and user == 0 else None
    return None


def raise_if_gone(what: str, text: str) -> None:
    """Raise `EngineError` if the daemon takes no new connection: it was the cause of the failure ``text``.

    A daemon that is shutting down kills what it runs, and still answers on existing connections.
    """
    try:
        connect().close()
    except HostError:
        raise engine_errors.gone("Docker", what, text) from None


def has_buildx() -> bool:
    """Whether the docker command is installed and has buildx."""
    program = process.which("docker")
    return program is not None and process.run([program, "buildx", "version"], check=False).returncode == 0


def has_own_buildkit() -> bool:
    """Whether the docker command, being older than 23, has the daemon's BuildKit build without buildx."""
    program = process.which("docker")
    if program is None:
        return False
    asked = [program, "version", "--format", "{{.Client.Version}} {{.Server.APIVersion}}"]
    done = process.run(asked, check=False)
    found = re.match(rb"(\d+)\S* 1\.(\d+)", done.stdout)
    return done.returncode == 0 and found is not None and int(found[1]) < 23 and int(found[2]) >= _BUILDKIT


@dataclass(frozen=True, slots=True)
class Builder:
    """The docker command's arguments for building, and whether the image is built outside the daemon."""

    command: tuple[str, ...] = ("buildx", "build")
    elsewhere: bool = False


def find_builder(name: str) -> Builder:
    """Return a builder of buildx by its name; one with the driver ``docker`` is the Docker of a context.

    Raises `HostError` if there is no such builder, or if it does not answer.
    """
    command = [process.require("docker", "to build with BuildKit"), "buildx", "inspect", name]
    done = process.run(command, check=False)
    text = done.stdout.decode("utf-8", "replace")
    driver, endpoint, status, error = (
        found and found[1]
        for found in (
            re.search(rf"^{k}:\s+(\S.*)$", text, re.MULTILINE)
            for k in ("Driver", "Endpoint", "Status", "Error")
        )
    )
    if done.returncode == 0 and not error and driver not in (None, "docker") and status != "running":
        # A stopped builder is started; one that is gone looks the same until then.
        done = process.run([*command, "--bootstrap"], check=False)
        error = None if done.returncode == 0 else f"it does not answer: {process.tail(done.stderr, 1)}"
    if done.returncode != 0 or not driver or error:
        raise HostError(
            f"--builder {name}: {error or process.tail(done.stderr or done.stdout)}",
            hint="`docker buildx ls` lists the builders",
        )
    if driver != "docker" or not endpoint:
        return Builder(("buildx", "build", "--builder", name), elsewhere=True)
    # buildx selects the Docker of another context by that context only.
    return Builder(("--context", endpoint, "buildx", "build"), elsewhere=_address(endpoint) != _address())


@contextmanager
def docker_errors(what: str) -> Iterator[None]:
    """Turn errors of the daemon and of the connection into `EngineError`."""
    try:
        yield
    except APIError as error:
        raise engine_errors.refused("Docker", what, str(error.explanation or error)) from None
    except GONE as error:
        raise engine_errors.gone("Docker", what, _text(error)) from None
    except (DockerException, requests.exceptions.RequestException) as error:
        raise engine_errors.refused("Docker", what, _text(error)) from None


def _text(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__
