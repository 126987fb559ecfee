"""Control groups: limits on the memory and processes of a run.

Both versions of them (Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst), made below the group
that this process is in, or beside it, where this user may; no daemon is asked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import HostError
from .descriptors import FOLDER, closing_descriptor

Controller = Literal["memory", "pids"]

_CONTROLLERS: tuple[Controller, ...] = ("memory", "pids")
_PREFIX = "reprobuild-"
_LIMITS: Mapping[tuple[Controller, int], tuple[str, ...]] = {
    # The second of a pair bounds memory and swap together; a kernel without swap accounting lacks it.
    ("memory", 1): ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    ("memory", 2): ("memory.max",),
    ("pids", 1): ("pids.max",),
    ("pids", 2): ("pids.max",),
}
_NO_SWAP = "memory.swap.max"
_EVENTS = {
    "memory": (("memory.oom_control", "oom_kill"), ("memory.events", "oom_kill")),
    "pids": (("pids.events", "max"),),
}
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EOPNOTSUPP)
"""Where this user may make no group, the last in a threaded one, which bounds no memory."""
_SECONDS_TO_DIE = 10.0
_JOIN = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"'


@dataclass(frozen=True, slots=True)
class GroupFolder:
    """A folder in which groups with some controllers can be made."""

    folder: Path
    controllers: tuple[Controller, ...]
    version: Literal[1, 2]


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of one run; see `made`."""

    folders: Sequence[Path]
    bounded: Collection[Controller]
    """What they bound; empty where this user may make none."""

    def joining(self, argv: Sequence[str]) -> list[str]:
        """Return a command that enters the groups and becomes ``argv``."""
        if not self.folders:
            return list(argv)
        # A runtime with groups of its own makes them beside the one it is in (runc, with version 2).
        files = [str(folder / "run" / "cgroup.procs") for folder in self.folders]
        return ["sh", "-c", _JOIN, "sh", *files, "--", *argv]

    def reached(self) -> Controller | None:
        """Return the limit that the programs have reached, or None."""
        for controller in self.bounded:
            for folder in self.folders:
                for name, key in _EVENTS[controller]:
                    if any(_count(path, key) for path in _files(folder, name)):
                        return controller
        return None


@contextmanager
def made(limits: Mapping[Controller, int]) -> Iterator[Groups]:
    """Make the groups of a run, where this user may, and remove them with all that is still in them.

    ``limits`` are in bytes and in tasks, which processes and threads are. What an earlier run, killed as it
    was, has left is removed too. Raises `HostError` where this user may make a group, and it holds no limit.
    """
    with ExitStack() as stack:
        folders: list[Path] = []
        bounded: list[Controller] = []
        for place in places():
            wanted = {c: limits[c] for c in place.controllers if c in limits and c not in bounded}
            if not wanted:
                continue
            _sweep(place.folder)
            try:
                folder = stack.enter_context(_one(place, wanted))
            except OSError as error:
                if error.errno in _NOT_ALLOWED:
                    continue
                raise HostError(
                    f"{error.filename or place.folder}: the limits of a run cannot be set: {error.strerror}",
                    hint="run the command again; if this happens again, check the control group it names",
                ) from error
            folders.append(folder)
            bounded += wanted
        yield Groups(tuple(folders), tuple(bounded))


@contextmanager
def _one(place: GroupFolder, limits: Mapping[Controller, int]) -> Iterator[Path]:
    folder, descriptor = _claimed(place.folder)
    try:
        for controller, most in limits.items():
            needed, *more = _LIMITS[controller, place.version]
            (folder / needed).write_text(str(most))
            for name in more:
                with suppress(OSError):
                    (folder / name).write_text(str(most))
        if place.version == 2 and "memory" in limits:
            with suppress(OSError):
                (folder / _NO_SWAP).write_text("0")
        (folder / "run").mkdir()
        yield folder
    finally:
        _end(folder)
        os.close(descriptor)  # only now may others sweep: two that remove one group get into each other's way


def _claimed(parent: Path) -> tuple[Path, int]:
    """Create a group; return it with a descriptor that protects it from other processes' `_sweep`."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # Until it is locked, a sweep may take it away; then a new one is made.
        with suppress(FileNotFoundError), ExitStack() as on_failure:
            descriptor = os.open(folder, FOLDER)
            on_failure.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                on_failure.pop_all()
                return folder, descriptor


def places(
    mounts: Path = Path("/proc/self/mountinfo"), own: Path = Path("/proc/self/cgroup")
) -> Iterator[GroupFolder]:
    """Return the folders in which this process can limit memory or processes, each controller once."""
    for group, top in _own_groups(mounts, own):
        if group.version == 2:
            yield from _unified(group.folder, top)
        elif os.access(group.folder, os.W_OK):
            yield group


def _own_groups(
    mounts: Path = Path("/proc/self/mountinfo"), own: Path = Path("/proc/self/cgroup")
) -> Iterator[tuple[GroupFolder, Path]]:
    """Return the groups of this process that bound memory or processes, each with the top of its mount."""
    try:
        lines = own.read_text("utf-8").splitlines()
        mounted = [line.split() for line in mounts.read_text("utf-8").splitlines()]
    except (OSError, ValueError):
        return
    groups = {
        name: path for _, names, path in (line.split(":", 2) for line in lines) for name in names.split(",")
    }
    for fields in mounted:
        end = fields.index("-")
        kind, options = fields[end + 1], fields[end + 3].split(",")
        top, root = Path(fields[4]), fields[3]
        if kind == "cgroup":
            for controller in _CONTROLLERS:
                found = _below(top, root, groups.get(controller)) if controller in options else None
                if found is not None:
                    yield GroupFolder(found, (controller,), 1), top
        elif kind == "cgroup2":
            found = _below(top, root, groups.get(""))
            if found is not None:
                yield GroupFolder(found, _CONTROLLERS, 2), top


def _unified(own: Path, top: Path) -> Iterator[GroupFolder]:
    """In version 2 a group with processes has no bounded ones below it; most often the one above has."""
    for folder in (own, *own.parents):
        try:
            enabled = {*(folder / "cgroup.subtree_control").read_text("ascii").split()}
        except OSError:
            return
        controllers = tuple(c for c in _CONTROLLERS if c in enabled)
        if controllers and all(os.access(path, os.W_OK) for path in (folder, folder / "cgroup.procs")):
            yield GroupFolder(folder, controllers, 2)
            return
        if folder == top:
            return


def _below(top: Path, root: str, own: str | None) -> Path | None:
    """Return the folder of a group, where the mount shows it."""
    if own is None or ".." in Path(own).parts or not Path(own).is_relative_to(root):
        return None
    found = top / Path(own).relative_to(root)
    return found if found.is_dir() else None


def own_limit(controller: Controller) -> int | None:
    """Return the bytes or tasks that the control groups of this process allow; None where they say nothing.

    Those above its own count too, where they can be seen.
    """
    found = []
    for group, _ in _own_groups():
        name = _LIMITS[controller, group.version][0]
        for folder in (group.folder, *group.folder.parents) if controller in group.controllers else ():
            with suppress(OSError, ValueError):
                found.append(int((folder / name).read_text("ascii")))
    return min(found, default=None)


def _files(folder: Path, name: str) -> list[Path]:
    """Return the files of a name in a group and those below; a runtime may be removing some of them."""
    with suppress(FileNotFoundError):
        return [*folder.rglob(name)]
    return [folder / name]


def _count(path: Path, key: str) -> int:
    try:
        pairs = (line.split() for line in path.read_text("ascii").splitlines())
        return next((int(pair[1]) for pair in pairs if pair[0] == key), 0)
    except (OSError, ValueError, IndexError):
        return 0


def _sweep(folder: Path) -> None:
    for left in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError), closing_descriptor(os.open(left, FOLDER)) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(left)


def _end(folder: Path) -> None:
    """Kill the remaining processes of a group, and remove it."""
    deadline = time.monotonic() + _SECONDS_TO_DIE
    while time.monotonic() < deadline:
        for listing in _files(folder, "cgroup.procs"):
            with suppress(OSError):
                for number in map(int, listing.read_text("ascii").split()):
                    with suppress(ProcessLookupError):
                        os.kill(number, signal.SIGKILL)
        try:
            _remove(folder)
        except OSError:
            time.sleep(0.02)  # the dying leave when they are dead
        else:
            return


def _remove(folder: Path) -> None:
    """Remove an empty group and those below; their files are the kernel's own, and go with them."""
    for below in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        below.rmdir()
    with suppress(FileNotFoundError):
        folder.rmdir()
