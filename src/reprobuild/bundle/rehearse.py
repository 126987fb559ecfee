"""Verify that a bundle suffices: install its reprobuild and build its images, without a network."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import BuildError, LockError, StorageError
from ..host import namespaces, process
from ..host.home import storage_errors
from ..host.host import Host
from ..host.machine import architecture
from ..host.os_reasons import FULL
from ..lock.platforms import lock_of_platform
from .contents import INSTALL
from .read import Head, extract

_DROPPED = ("PIP_", "UV_", "PYTHON", "REPROBUILD_", "XDG_")
"""Variables by which this machine's settings would reach what is installed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """An image built from a bundle."""

    name: str
    """Of the lock."""
    lock: str
    digest: str


def rehearse(head: Head, host: Host) -> Iterator[Built]:
    """Build each image of a bundle for this machine, in an empty home and without a network.

    Its reprobuild does that, installed by its own script. Raises `HostError` for programs that this machine
    lacks, `FetchError` for a damaged bundle, `StorageError` for a full disk, `BuildError` where anything else
    fails.
    """
    for needed in ("crun", "mmdebstrap"):
        process.require(needed, "to build what is in the bundle")
    platform = f"linux/{architecture()}"
    with host.home.scratch("bundle") as folder:
        with storage_errors(folder):
            (folder / "work").mkdir()
            script = extract(head, INSTALL, folder)
        program = folder / "installed" / "venv" / "bin" / "reprobuild"
        host.console.step("installing the bundle's reprobuild, without a network")
        _run(folder, ["sh", str(script), str(head.file.absolute()), str(folder / "installed")])
        for name, locks in head.locks.items():
            short = name.removeprefix("pylock.").removesuffix(".toml")
            try:
                lock = lock_of_platform(locks, platform, f"{head.file}: {name}")
            except LockError as error:
                host.console.warn(f"{error.message}: it is not built here")
                continue
            host.console.step(f"building {short} from the bundle, without a network")
            command = ["image", short, "--bundle", str(head.file.absolute()), "--json"]
            said = _run(folder, [str(program), *command])
            yield Built(name=short, lock=lock.digest, digest=str(json.loads(said)["digest"]))


def _run(folder: Path, argv: list[str]) -> bytes:
    """Run a program that reaches no network and none of this user's settings; return what it says."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(_DROPPED)}
    env |= {
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder),
        "REPROBUILD_HOME": str(folder / "home"),
        "PIP_CONFIG_FILE": os.devnull,
    }
    try:
        return process.run([*namespaces.without_network(), *argv], env=env, cwd=folder / "work").stdout
    except process.ProcessFailed as failed:
        full = any(os.strerror(number) in failed.tail for number in FULL)
        if full or failed.returncode == StorageError.exit_code:
            raise StorageError(
                f"{folder}: nothing is known of the bundle, since the disk failed: {failed.tail}",
                hint="free space there; REPROBUILD_HOME names another place",
            ) from None
        raise BuildError(
            f"the bundle does not suffice on this machine: {failed.tail}",
            hint="create it again with `reprobuild bundle`; its README names what else the machine must have",
        ) from None
