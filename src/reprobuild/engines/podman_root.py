"""Read the root of a Podman image as one tar from its mount, without a copy.

``podman save`` would write all layers out first, and refuses layers compressed by zstd in Docker's form
(https://github.com/containers/image/issues/1260).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from ..host import process
from . import engine_errors
from .container_engine import READ

_TAR = (
    *("--create", "--file=-", "--blocking-factor=2048", "--format=posix", "--numeric-owner"),
    *("--xattrs", "--xattrs-include=*"),
    # Times do not count, and those below a second would take a header for each file.
    *("--mtime=@0", "--pax-option=delete=atime,delete=ctime"),
)


@contextmanager
def podman_errors(what: str) -> Iterator[None]:
    """Turn a failure of Podman's command into `EngineError`."""
    try:
        yield
    except process.ProcessFailed as failed:
        raise engine_errors.refused("Podman", what, failed.tail) from None


@contextmanager
def opened_root(podman: str, image: str) -> Iterator[IO[bytes]]:
    """Yield the tar of an image's root to read, by the image ID. Raises `process.ProcessFailed`."""
    if _is_remote(podman):
        with _exported(podman, image) as tar:
            yield tar
        return
    # The mounts of an ordinary user's Podman are in a namespace of its own.
    inside = [] if os.geteuid() == 0 else [podman, "unshare"]
    with process.at_the_end([*inside, podman, "image", "unmount", image]):
        found = process.run([*inside, podman, "image", "mount", image]).stdout
        root = found.decode("utf-8", "surrogateescape").strip()
        tar_program = process.require("tar", "to read an image of an engine")
        with process.stream([*inside, tar_program, *_TAR, "--directory", root, "."]) as tar:
            yield tar


@contextmanager
def opened_file(podman: str, image: str, path: str) -> Iterator[IO[bytes]]:
    """Yield the tar of one file of an image to read. Raises `process.ProcessFailed`."""
    with (
        _container(podman, image) as container,
        process.stream([podman, "cp", f"{container}:/{path}", "-"]) as tar,
    ):
        yield tar


@contextmanager
def _exported(podman: str, image: str) -> Iterator[IO[bytes]]:
    with _container(podman, image) as container, process.stream([podman, "export", container]) as tar:
        yield tar


@contextmanager
def _container(podman: str, image: str) -> Iterator[str]:
    """Yield a container of an image that is never started."""
    # Left by a run that was killed.
    process.run([podman, "container", "prune", "--force", f"--filter=label={READ}", "--filter=until=1h"])
    create = [podman, "create", f"--label={READ}=1", "--pull=never", "--image-volume=ignore"]
    made = process.run([*create, "--network=none", "--entrypoint=[]", image, "-"]).stdout
    container = made.decode().strip()
    try:
        yield container
    finally:
        process.run([podman, "rm", "--force", "--ignore", "--time=0", container], check=False)


def _is_remote(podman: str) -> bool:
    facts = json.loads(process.run([podman, "info", "--format", "json"]).stdout)
    return bool(facts["host"].get("serviceIsRemote"))
