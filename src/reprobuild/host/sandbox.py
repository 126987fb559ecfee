"""Run a program in a root of unpacked layers, through crun or runc, as root or as an ordinary user.

The layers are stacked with overlayfs in namespaces of the run's own, so nothing stays mounted or running when
it ends, however it ends. An ordinary user gets a user namespace with one identity in it, root.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ..errors import HostError
from . import confinement, namespaces, process
from .home import kind_of
from .limits import LARGEST_FILE, Limits, default_processes, guarded, of_steps
from .removal import mounts_below, unescaped

_ROOT_MODE = 0o755
RUNTIMES: tuple[str, ...] = ("crun", "runc")

# $1 options of the overlay, $2 the runtime, $3 where it keeps its state, $4 options of the runtime, $5 the
# container's name, $6 further options of an ordinary user's overlays; each folder of copies/ is one that the
# program writes over without changing it. crun refuses a host that has both versions of control groups
# (containers/crun, "cgroups in hybrid mode"), and runc one where it may not make any; neither needs one here,
# so both see none.
_SETUP = """
{
  LIBMOUNT_FORCE_MOUNT2=always mount -t overlay -o "$1" overlay rootfs &&
  for copy in copies/*; do
    [ -e "$copy/lower" ] || continue
    folders="lowerdir=$copy/lower,upperdir=$copy/upper,workdir=$copy/work"
    LIBMOUNT_FORCE_MOUNT2=always mount -t overlay -o "nodev,nosuid,$folders$6" overlay "$copy/merged" ||
      exit 125
  done &&
  { [ -z "$4" ] || mount -t tmpfs tmpfs /sys/fs/cgroup; }
} 2>setup.log || exit 125
exec "$2" $4 --root "$3" --log setup.log run --bundle . "$5"
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bind:
    """A folder or file of the host that the program sees."""

    source: Path
    destination: str
    writable: bool = False
    copied: bool = False
    """Whether the program writes into a view of its own: what it wrote is in `written_over`, the source
    as it was."""

    def __post_init__(self) -> None:
        """Make what is neither a file nor a folder read-only.

        crun 1.8 drops nodev of a device that is writable, so that it could be opened, and a copy of one has
        no end. A program can write to a pipe or socket of a read-only mount all the same.
        """
        if self.writable and kind_of(self.source) == "other":
            object.__setattr__(self, "writable", False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """A device node of the host that the program may use."""

    path: str
    """Where it is in the image."""
    source: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A command and its access to the host: by default no network, no capability, nothing writable."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str = "/"
    binds: Sequence[Bind] = ()
    devices: Sequence[Device] = ()
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Empty folders in memory, by path, with further options of their mount."""
    writable: bool = False
    """Whether the root can be written; what is written lands in the run's folder ``upper``."""
    network: Literal["none", "host"] = "none"
    capabilities: Sequence[str] = ()
    """Capabilities, without the prefix ``CAP_``."""
    all_ids: bool = False
    """Whether an ordinary user's program has other users than root too; see `namespaces.prefix`."""
    user: tuple[int, int] = (0, 0)
    """The ids of user and group; others than root take ``all_ids`` where an ordinary user runs it."""
    groups: Sequence[int] = ()
    """Further groups of the program, by the host's ids."""
    terminal: bool = False
    hooks: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Hooks of the OCI runtime specification, by kind."""


_UNSTACKABLE = ("overlay", "fuse", "nfs", "cifs", "smb", "vfat", "exfat", "ntfs", "9p")
"""How the types of file systems begin to which overlayfs cannot write: filesystems/overlayfs.rst of Linux's
documentation has what an upper layer needs."""

HOSTNAME = "reprobuild"
"""The name of the machine in a container."""


def runtime() -> str:
    """Return the path of crun, else of runc. Raises `HostError` when neither is installed."""
    for name in RUNTIMES:
        found = process.which(name)
        if found is not None:
            return found
    raise HostError(
        "neither crun nor runc is installed; one is needed to run programs in an image",
        hint="apt-get install -y crun",
    )


def prepare(
    folder: Path,
    layers: Sequence[Path],
    task: Task,
    *,
    limits: Limits | None = None,
    largest_file: int | None = None,
) -> list[str]:
    """Write a bundle into an empty folder and return the command that runs it, to be started in that folder.

    ``layers`` are unpacked, the lowest first. What the program writes is left in ``folder/upper`` when
    ``task.writable``. Of ``limits`` the runtime holds that of an ordinary user's processes; `limits.guarded`
    holds all. Raises `HostError`.
    """
    program = runtime()
    for name in ("rootfs", "layers", "upper", "work", "state", "empty"):
        (folder / name).mkdir()
        (folder / name).chmod(_ROOT_MODE)  # the umask would shut other users of the program out
    # The mount's options must fit on one page, so each layer gets a short name.
    names = []
    for index, layer in enumerate(reversed(layers)):
        (folder / "layers" / str(index)).symlink_to(layer.absolute())
        names.append(f"layers/{index}")
    # Also a read-only root takes an upper folder: the runtime makes the points for its mounts there.
    options = "nodev,nosuid,lowerdir=" + ":".join([*names, "empty"]) + ",upperdir=upper,workdir=work"
    of_user = ",userxattr" if os.geteuid() != 0 else ""
    options += of_user
    task = replace(task, binds=_copies(folder, task.binds))
    (folder / "config.json").write_text(json.dumps(_config(task, limits, largest_file), indent=1))
    (folder / "setup.sh").write_text(_SETUP)
    crun = "--cgroup-manager=disabled" if Path(program).name == "crun" else ""
    name = "reprobuild-" + re.sub(r"[^\w.-]", "", folder.name)
    return [
        *namespaces.prefix(all_ids=task.all_ids),
        "sh",
        "setup.sh",
        options,
        program,
        str(folder / "state"),
        crun,
        name,
        of_user,
    ]


def written_over(folder: Path, binds: Sequence[Bind]) -> list[tuple[Path, str]]:
    """Return, of a run in ``folder``, where what it wrote into each copied bind is, and the bind's
    destination."""
    found = []
    for number, bind in enumerate(binds):
        if bind.copied:
            is_folder = (folder / "copies" / str(number) / "lower").exists()
            place = bind.destination if is_folder else str(Path(bind.destination).parent)
            found.append((folder / "copies" / str(number) / "upper", place))
    return found


def _copies(folder: Path, binds: Sequence[Bind]) -> list[Bind]:
    """Make the folders of the copied binds and return the binds as the runtime gets them."""
    found = []
    for number, bind in enumerate(binds):
        if not bind.copied:
            found += [bind, *_mounts_below(bind)]
            continue
        copy = folder / "copies" / str(number)
        is_folder = bind.source.is_dir()
        for name in ("upper", "work", "merged") if is_folder else ("upper",):
            (copy / name).mkdir(parents=True)
            (copy / name).chmod(_ROOT_MODE)
        if is_folder:
            (copy / "lower").symlink_to(bind.source.absolute())  # a short name, without commas and colons
            status = bind.source.stat()
            (copy / "upper").chmod(stat.S_IMODE(status.st_mode))
            if os.geteuid() == 0:
                os.chown(copy / "upper", status.st_uid, status.st_gid)
            source = copy / "merged"
        else:
            source = copy / "upper" / Path(bind.destination).name
            shutil.copy2(bind.source, source)
        found += [replace(bind, source=source, writable=True), *_mounts_below(bind)]
    return found


def _mounts_below(bind: Bind) -> list[Bind]:
    """Return as binds what is mounted below the source of one, read-only where that is copied.

    overlayfs shows empty folders in its place, and so does crun 1.8 where the container has a user namespace.
    What the kernel shows in files is not for a program without rights.
    """
    if not bind.source.is_dir():
        return []
    top = bind.source.resolve()
    return [
        replace(
            bind,
            source=place,
            destination=f"{bind.destination}/{place.relative_to(top)}",
            writable=bind.writable and not bind.copied,
            copied=False,
        )
        for place in mounts_below(top)
        if kind_of(place) and place.parts[1] not in ("dev", "proc", "sys")
    ]


def run(
    folder: Path,
    layers: Sequence[Path],
    task: Task,
    *,
    timeout: float | None = None,
    largest_file: int = LARGEST_FILE,
    most_output: int = process.OUTPUT_LIMIT,
) -> process.Completed:
    """Run to the end, within the limits of a build's step; a status other than 0 is not raised.

    ``largest_file`` and ``most_output`` are the bytes of a file and of output that it may write. Raises
    `HostError`, `process.ProcessTimeout`, `process.LimitReached`.
    """
    limits = of_steps()
    command = prepare(folder, layers, task, limits=limits, largest_file=largest_file)
    with guarded(limits) as guard:
        done = process.run(command, cwd=folder, timeout=timeout, limit=most_output, check=False, guard=guard)
    if done.returncode != 0:
        check_started(folder, task)
    return done


def deliver(process_id: int, number: int) -> bool:
    """Send a signal to the program of a run; ``process_id`` is that of the command that `prepare` returned.

    Returns False, and sends nothing, where that could not end it: it is not started yet, or it neither
    catches nor blocks the signal, which the kernel then keeps from the first process of a container.
    """
    try:
        depth = len(_status(process_id)["NSpid"].split())
        for each in _descendants(process_id):
            status = _status(each)
            if len(status["NSpid"].split()) == depth + 2:
                # A blocked signal waits; in_image/init.py blocks all until it can pass them on.
                if _has(status["SigCgt"], number) or _has(status["SigBlk"], number):
                    os.kill(each, number)
                    return True
                return _has(status["SigIgn"], number)
    except (OSError, KeyError):
        pass  # it has just ended
    return False


def _has(signals: str, number: int) -> bool:
    """Whether a signal is in a set, in the form of ``/proc/PID/status``."""
    return bool(int(signals, 16) >> (number - 1) & 1)


def _status(process_id: int) -> dict[str, str]:
    lines = Path(f"/proc/{process_id}/status").read_text("utf-8", "replace").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _descendants(process_id: int) -> list[int]:
    """Return the children of a process, the first first, each before its own."""
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    return [each for child in map(int, children) for each in (child, *_descendants(child))]


def check_started(folder: Path, task: Task) -> None:
    """Raise `HostError` when the program of a run that ended badly was not even started."""
    log = folder / "setup.log"
    if not log.exists():
        namespaces.check(all_ids=task.all_ids)
        return
    lines = log.read_text("utf-8", "replace").splitlines()
    reason = "\n".join(line for line in lines if "level=warning" not in line)
    if "mount: " in reason:
        raise HostError(
            f"the image's layers could not be stacked: {reason}",
            hint=unstackable(folder)
            or "overlayfs in a user namespace needs Linux 5.11; as root it needs CAP_SYS_ADMIN",
        )
    if reason:
        raise HostError(f"{task.argv[0]} could not be started in the image: {reason}")


def unstackable(folder: Path) -> str:
    """Return what to do where a folder is on a file system to which overlayfs cannot write; else nothing."""
    place = folder.resolve()
    mounted, kind = Path("/"), ""
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        point = Path(unescaped(before.split(" ")[4]))
        if place.is_relative_to(point) and len(point.parts) >= len(mounted.parts):  # the last one is on top
            mounted, kind = point, after.split(" ")[0]
    if not kind.startswith(_UNSTACKABLE):
        return ""
    other = "ext4, xfs, btrfs or tmpfs; in a container it may be a volume"
    return (
        f"{folder} is on {kind}, to which overlayfs cannot write: set REPROBUILD_HOME to a folder on {other}"
    )


def _config(task: Task, limits: Limits | None, largest_file: int | None) -> dict[str, Any]:
    capabilities = [f"CAP_{name}" for name in task.capabilities]
    kinds = ("bounding", "effective", "permitted", "inheritable")
    spaces = ["pid", "ipc", "uts", "mount", *(["network"] if task.network == "none" else [])]
    # Not with the hooks of a GPU's vendor, which mount what belongs to the host's users, nor with its groups,
    # which are the host's. Elsewhere it also locks the root's nodev, which runtimes drop when they make the
    # root read-only.
    ids = confinement.user_namespace() if not task.hooks and not task.groups else {}
    spaces += ["user"] if ids else []
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": task.terminal,
            "user": {
                "uid": task.user[0],
                "gid": task.user[1],
                **({"additionalGids": list(task.groups)} if task.groups else {}),
            },
            "args": list(task.argv),
            "env": [f"{key}={value}" for key, value in sorted(task.env.items())],
            "cwd": task.cwd,
            "capabilities": dict.fromkeys(kinds, capabilities),
            "noNewPrivileges": True,
            "rlimits": _rlimits(limits, largest_file),
        },
        "root": {"path": "rootfs", "readonly": not task.writable},
        "hostname": HOSTNAME,
        "mounts": [
            *_MOUNTS,
            _sys(task, own_users=os.geteuid() != 0 or bool(ids)),
            *(
                _mount(path, "tmpfs", "nosuid", "nodev", "mode=755", *options)
                for path, options in sorted(task.folders.items())
            ),
            *(_bind(b) for b in task.binds),
            *(_device_bind(d) for d in task.devices),
        ],
        "hooks": {kind: list(hooks) for kind, hooks in task.hooks.items()},
        "linux": {
            "namespaces": [{"type": kind} for kind in spaces],
            **ids,
            # A run with the host's network is the user's own: NCCL tells machines apart by their boot.
            "maskedPaths": [
                *confinement.MASKED,
                *(confinement.OF_THE_BOOT if task.network == "none" else ()),
            ],
            "readonlyPaths": list(confinement.READ_ONLY),
            "seccomp": confinement.seccomp(task.capabilities),
            "resources": {"devices": confinement.device_rules([device.source for device in task.devices])},
        },
    }


def _rlimits(limits: Limits | None, largest_file: int | None) -> list[dict[str, Any]]:
    # Linux counts the processes of an ordinary user here, none of root's.
    processes = limits.processes if limits is not None else None
    found = {"RLIMIT_NPROC": processes or default_processes()}
    if largest_file is not None:
        found |= {"RLIMIT_FSIZE": largest_file, "RLIMIT_CORE": 0}
    return [{"type": kind, "soft": most, "hard": most} for kind, most in found.items()]


@cache
def _has_mount_attributes() -> bool:
    """Whether the kernel has mount_setattr(2), from Linux 5.12 on."""
    form = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return form is not None and (int(form[1]), int(form[2])) >= (5, 12)


def _bind(bind: Bind) -> dict[str, Any]:
    options = ["rbind", "nosuid", "nodev", "rw" if bind.writable else "ro"]
    if bind.source.is_dir() and _has_mount_attributes():
        # crun 1.8 passes over the others where a bind is writable; these it sets with mount_setattr(2).
        options += ["rnosuid", "rnodev"]
    return {"destination": bind.destination, "type": "bind", "source": str(bind.source), "options": options}


def _device_bind(device: Device) -> dict[str, Any]:
    # A bind of the host's node: making one takes a capability that an ordinary user has not.
    return {
        "destination": device.path,
        "type": "bind",
        "source": str(device.source),
        "options": ["bind", "rw", "nosuid", "noexec"],
    }


def is_device(path: Path) -> bool:
    """Whether a path is a character or block device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _mount(destination: str, kind: str, *options: str) -> dict[str, Any]:
    return {"destination": destination, "type": kind, "source": kind, "options": list(options)}


def _sys(task: Task, *, own_users: bool) -> dict[str, Any]:
    if task.network == "none" or not own_users:
        return _mount("/sys", "sysfs", "nosuid", "noexec", "nodev", "ro")
    # The kernel lets only the owner of the network namespace mount sysfs, which the host's own root is.
    options = ["rbind", "nosuid", "noexec", "nodev", "ro"]
    return {"destination": "/sys", "type": "bind", "source": "/sys", "options": options}


_MOUNTS = (
    _mount("/proc", "proc", "nosuid", "noexec", "nodev"),
    _mount("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
    _mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
    # DataLoader workers and NCCL share tensors there.
    _mount("/dev/shm", "tmpfs", "nosuid", "noexec", "nodev", "mode=1777", "size=2g"),  # noqa: S108 -- in the image
    _mount("/tmp", "tmpfs", "nosuid", "nodev", "mode=1777"),  # noqa: S108 -- in the image
)
