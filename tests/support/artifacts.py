"""Locked files, fetched once for all processes and all stages of a run, and the folder that they share."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock


def fetch_once(lock: Lock, store: Store, factory: pytest.TempPathFactory) -> None:
    """Give a store the files of a lock: as links to those of an earlier call, or fetched."""
    with shared_folder(factory) as shared:
        every = Store(Home(shared))
        fetch(lock, every, Console(quiet=True))
        link_artifacts(every.root, store.root)


@contextmanager
def shared_folder(factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give one process at a time the folder of what takes long to come by.

    REPROBUILD_TEST_STORE names one that stays from one run of pytest to the next; without it, it lasts for
    one run, and is shared by its processes.
    """
    shared = Path(os.environ.get("REPROBUILD_TEST_STORE") or _base(factory) / "artifacts")
    shared.mkdir(parents=True, exist_ok=True)
    with (shared / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield shared


def link_artifacts(source: Path, target: Path) -> None:
    """Give a store the artifacts of another, as links; where those cannot be made, none."""
    for path in source.glob("sha256/??/*"):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            place.hardlink_to(path)
        except OSError:
            return


def unshare(path: Path) -> None:
    """Make a file its home's own before a test damages it: others have it by another link."""
    copy = path.with_name(f"{path.name}.own")
    shutil.copy2(path, copy)
    copy.replace(path)


def _base(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of the whole run; with pytest-xdist, each process has one of its own in it."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
