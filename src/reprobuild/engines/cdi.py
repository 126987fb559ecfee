"""Read CDI specifications, the files that say which nodes, mounts, variables and hooks a GPU needs.

CDI is the Container Device Interface (cncf-tags/container-device-interface, SPEC.md). `nvidia-ctk cdi
generate` writes such a file for a driver. What the library of Docker and Podman refuses is refused here too.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import HostError
from ..host.sandbox import Bind, Device
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX
from ..request.table import JsonTable, Table, TableError, refused_as, shown
from .cdi_files import ANEW, as_text, read_cdi

CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
KIND = "nvidia.com/gpu"

_OF_DRIVER = ("NVIDIA_VISIBLE_", "NVIDIA_DRIVER_", "CUDA_VISIBLE_", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH")
"""Variables that say which GPUs, and where the driver's libraries are."""
_TMPFS_SIZE = "size=64m"
_MOST_GROUP = (1 << 32) - 2
_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
IN_CONTAINER = "startContainer"
"""The hook whose path is one in the container (opencontainers/runtime-spec, config.md)."""
_VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
"""Those that are released (specs-go/version.go)."""
_SPEC = ("cdiVersion", "kind", "annotations", "devices", "containerEdits")
_DEVICE = ("name", "annotations", "containerEdits")
_UNMADE = ("netDevices", "intelRdt")
"""Edits that no GPU of NVIDIA needs: they move network interfaces and divide a processor's cache."""
_EDITS = ("env", "deviceNodes", "hooks", "mounts", "additionalGids", *_UNMADE)
_NODE = ("path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid")
_MOUNT = ("hostPath", "containerPath", "options", "type")
_HOOK = ("hookName", "path", "args", "env", "timeout")
_TEXTS = (
    "cdiVersion",
    "kind",
    "name",
    "path",
    "hostPath",
    "containerPath",
    "hookName",
    "type",
    "permissions",
)
_LISTS = ("env", "args", "options")
_WHOLE = {"major": 1 << 63, "minor": 1 << 63, "fileMode": 1 << 32, "uid": 1 << 32, "gid": 1 << 32}
"""Bounds of a node's numbers: an int64 or uint32 of Go."""
_NAME = re.compile(r"[0-9A-Za-z]([0-9A-Za-z_.:-]*[0-9A-Za-z])?")
_MOUNT_OPTION = re.compile(
    r"r?(ro|rw|bind|exec|noexec|suid|nosuid|dev|nodev|private|slave|shared|unbindable)"
    r"|(no|rel|strict)?atime|(no)?diratime|sync|async|defaults"
)
"""Options of a bind that change nothing here but ``ro``: all binds are private, nosuid and nodev."""
_TMPFS_OPTION = re.compile(r"size=[0-9]+[kmg%]?|mode=[0-7]{3,4}|ro|noexec")
_GPU_NODE = re.compile(r"/dev/(nvidia\d+|dxg|nvmap|nvgpu(/.*)?|nvhost-.*)")
"""What CUDA opens of a GPU; in WSL and on Jetson boards it has another name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuAccess:
    """The options to add to a container; none where Docker or Podman add their own."""

    devices: Sequence[Device] = ()
    binds: Sequence[Bind] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    hooks: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Empty folders in memory, by path, with options of their mount."""
    groups: Sequence[int] = ()
    """Further groups of the program."""

    def env_over(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return these variables for an image that has some of its own: library folders go behind its own.

        Raises `HostError` for one that would replace a variable of the image.
        """
        for name in sorted(self.env.keys() & own.keys()):
            if not name.startswith(_OF_DRIVER) and own[name] != self.env[name]:
                raise HostError(
                    f"the CDI file for {KIND} sets {name} to {shown(self.env[name])}, which is"
                    f" {shown(own[name])} in the image",
                    hint="take it out of the file's env, or use --gpu off",
                )
        name = "LD_LIBRARY_PATH"
        both = {name: f"{own[name]}:{self.env[name]}"} if own.get(name) and name in self.env else {}
        return {**self.env, **both}


def without_gpu(access: GpuAccess) -> str | None:
    """Return why CUDA finds no GPU with what CDI files name, or None."""
    paths = [device.path for device in access.devices]
    if any(map(is_gpu, paths)):
        return None
    for_machines = any(path.startswith("/dev/vfio/") for path in paths)
    return f"the CDI file for {KIND} names no GPU" + (
        ", but one that is handed to virtual machines (/dev/vfio)" if for_machines else ""
    )


def is_gpu(path: str) -> bool:
    """Whether a device node, by its path in a container, is a GPU's."""
    return _GPU_NODE.fullmatch(path) is not None


def host_paths(access: GpuAccess) -> Iterator[Path]:
    """Yield the paths that must be on this machine for a container to start."""
    yield from (device.source for device in access.devices)
    yield from (bind.source for bind in access.binds)
    for kind, calls in access.hooks.items():
        if kind != IN_CONTAINER:
            yield from (Path(str(call["path"])) for call in calls)


@dataclass(frozen=True, slots=True)
class CdiDevice:
    """A device of a CDI file: its own edits, and those that the file has for all."""

    path: Path
    edits: JsonTable
    common: JsonTable


def cdi_devices(folders: Sequence[Path]) -> dict[str, CdiDevice]:
    """Return the devices of all files by name; the device ``all`` of a file means all of that file.

    A later folder outranks an earlier one, and its ``all`` means all that there is; two files of one folder
    must not define the same device (SPEC.md of CDI, and its packages). Raises `HostError` for a file that is
    not valid.
    """
    found: dict[str, CdiDevice] = {}
    for folder in folders:
        here: dict[str, CdiDevice] = {}
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.json")]):  # no other ending (SPEC.md)
            for name, device in _devices_of(read_cdi(path, KIND), path).items():
                if name in here:
                    raise HostError(
                        f"{path}: {here[name].path} defines the GPU {name}, too",
                        hint="remove one of the two CDI files, or use --gpu off",
                    )
                here[f"{name} of {path}" if name == "all" else name] = device
        whole = any(name.startswith("all of ") for name in here)
        found = here if whole else found | here
    return found


def _devices_of(spec: Mapping[str, Any], path: Path) -> dict[str, CdiDevice]:
    if [value for key, value in spec.items() if str(key).lower() == "kind"] != [KIND]:
        return {}
    with _refused(path):
        whole = _fields(JsonTable(spec), _SPEC)
        entries = [_fields(each, _DEVICE) for each in whole.tables("devices", default=())]
        if not entries:
            raise whole.bad("devices", "there are none")
        devices = {_name(each): each for each in entries}
        if len(devices) < len(entries):
            raise TableError("it defines a device twice")
        common = _edits_of(whole)
        every = {name: _edits_of(each) for name, each in devices.items()}
        for name, edits in every.items():
            if not any(edits.data.values()):
                raise TableError(f"{edits.place}: the device {name} has none")
        _hold_version(whole, entries, [common, *every.values()])
    return {name: CdiDevice(path, edits, common) for name, edits in every.items()}


def _fields(table: Table, known: Collection[str]) -> JsonTable:
    """Return a table's values by the known keys, as Go reads them: in any case, and null as missing."""
    names = {name.lower(): name for name in known}
    found: dict[str, Any] = {}
    for key, value in table.data.items():
        name = names.get(str(key).lower())
        if name is None:
            raise table.bad(str(key)[:80], f"unknown key: reprobuild reads CDI up to {_VERSIONS[-1]}")
        if name in found:
            raise table.bad(name, "is there twice")
        found[name] = value
    for key in found.keys() & {*_TEXTS}:
        found[key] = as_text(found[key])
    for key in found.keys() & {*_LISTS}:
        found[key] = [*map(as_text, found[key])] if isinstance(found[key], list) else found[key]
    return JsonTable({key: value for key, value in found.items() if value is not None}, table.place)


def _edits_of(table: JsonTable) -> JsonTable:
    key = "containerEdits"
    return _fields(JsonTable(table.value(key, dict, {}), table.where(key)), _EDITS)


def _hold_version(spec: JsonTable, devices: Sequence[JsonTable], edits: Sequence[JsonTable]) -> None:
    """Refuse a version that is not released, and one that does not have what the file uses (SPEC.md)."""
    version = spec.value("cdiVersion", str).removeprefix("v")
    if version not in _VERSIONS:
        raise spec.bad(
            "cdiVersion", f"{shown(version)} is not one of {', '.join(_VERSIONS)}, which reprobuild reads"
        )
    nodes = [node for each in edits for node in each.tables("deviceNodes", default=())]
    mounts = [mount for each in edits for mount in each.tables("mounts", default=())]
    uses = {
        "additionalGids": ("0.7.0", any(each.data.get("additionalGids") for each in edits)),
        "annotations": ("0.6.0", any(each.data.get("annotations") for each in (spec, *devices))),
        "hostPath of a node": ("0.5.0", any(_has(node, "hostPath") for node in nodes)),
        "a name that begins with a digit": ("0.5.0", any(_name(each)[0].isdigit() for each in devices)),
        "type of a mount": ("0.4.0", any(_has(mount, "type") for mount in mounts)),
    }
    for what, (since, used) in uses.items():
        if used and _VERSIONS.index(version) < _VERSIONS.index(since):
            raise spec.bad("cdiVersion", f"{shown(version)}, but {what} needs {since}")


def _has(table: Table, name: str) -> bool:
    return any(str(key).lower() == name.lower() and value for key, value in table.data.items())


def _name(device: JsonTable) -> str:
    name = device.value("name", str)
    if not _NAME.fullmatch(name):
        raise device.bad("name", f"{shown(name)} is not a name: expected letters, digits and -_.: within")
    return name


def edits_of(devices: Mapping[str, CdiDevice], visible: Mapping[str, str]) -> GpuAccess:
    """Return the device ``all`` of each file that has it, else every device, with the edits common to all."""
    whole = {device.path for name, device in devices.items() if name.startswith("all of ")}
    chosen = [
        devices[name]
        for name in sorted(devices)
        if name.startswith("all of ") or devices[name].path not in whole
    ]
    # By the file, so that one that cannot be understood is named.
    parts = []
    for path in dict.fromkeys(device.path for device in chosen):
        edits = [device for device in chosen if device.path == path]
        with _refused(path):
            parts.append(_merged([edits[0].common, *(device.edits for device in edits)]))
    return _joined(parts, visible)


def _joined(parts: Sequence[GpuAccess], visible: Mapping[str, str]) -> GpuAccess:
    """Merge the edits of several files."""
    hooks: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts:
        for kind, calls in part.hooks.items():
            known = hooks.setdefault(kind, [])
            known += [call for call in calls if call not in known]
    return GpuAccess(
        devices=list({device.path: device for part in parts for device in part.devices}.values()),
        binds=list({bind.destination: bind for part in parts for bind in part.binds}.values()),
        env={**{key: value for part in parts for key, value in part.env.items()}, **visible},
        hooks=hooks,
        folders={path: size for part in parts for path, size in part.folders.items()},
        groups=sorted({group for part in parts for group in part.groups}),
    )


def _merged(edits: Iterable[JsonTable]) -> GpuAccess:
    devices: dict[str, Device] = {}
    binds: dict[str, Bind] = {}
    folders: dict[str, Sequence[str]] = {}
    env: dict[str, str] = {}
    groups: list[int] = []
    hooks: dict[str, list[Mapping[str, Any]]] = {}
    for edit in edits:
        if (unmade := next((key for key in _UNMADE if edit.data.get(key)), None)) is not None:
            raise edit.bad(unmade, "reprobuild cannot make this change to a container")
        devices |= {node.path: node for node in map(_node, edit.tables("deviceNodes", default=()))}
        for each in edit.tables("mounts", default=()):
            mount = _fields(each, _MOUNT)
            target = _free_path(mount, "containerPath")
            if _is_bind(mount):
                source = Path(_path(mount, "hostPath"))
                binds[target] = Bind(source=source, destination=target, writable=_is_writable(mount))
            else:
                folders[target] = (_TMPFS_SIZE, *mount.texts("options", _tmpfs_option, ()))
        env |= dict(line.split("=", 1) for line in edit.texts("env", _variable, ()))
        groups += _groups(edit)
        for each in edit.tables("hooks", default=()):
            hook = _fields(each, _HOOK)
            kept = hooks.setdefault(str(hook.choice("hookName", _HOOKS)), [])
            if (call := _call(hook)) not in kept:
                kept.append(call)
    return GpuAccess(
        devices=list(devices.values()),
        binds=list(binds.values()),
        env=env,
        hooks=hooks,
        folders=folders,
        groups=groups,
    )


def _node(table: Table) -> Device:
    node = _fields(table, _NODE)
    path = _free_path(node, "path")
    access = node.text("permissions", lambda text: not text.strip("rwm"), "letters of rwm", "")
    if access and not {*access} >= {*"rw"}:
        raise node.bad("permissions", f"{shown(access)}, but a GPU is read and written")
    if node.value("type", str, "") not in ("", "c", "u"):
        raise node.bad("type", f"{shown(node.data['type'])} is not that of a GPU, c")
    for key, bound in _WHOLE.items():
        # Go takes these for whole numbers; PyYAML does not.
        if not re.fullmatch(r"0o[0-7]+|[0-9]+\.0", str(node.data.get(key))):
            node.integer(key, -1 if bound == 1 << 63 else 0, bound - 1, 0)
    return Device(path=path, source=Path(_path(node, "hostPath", path) or path))


def _is_bind(mount: JsonTable) -> bool:
    """Whether a mount is a bind; its options say so, and its type is a dummy then (SPEC.md)."""
    options = mount.texts("options", default=())
    kind = mount.value("type", str, "")
    if kind == "bind" or not {"bind", "rbind"}.isdisjoint(options):
        if (
            unknown := next((each for each in options if not _MOUNT_OPTION.fullmatch(each)), None)
        ) is not None:
            raise mount.bad("options", f"{shown(unknown)} is not a known option of a bind")
        return True
    if kind != "tmpfs":
        raise mount.bad("options", "neither bind nor rbind is among them, so no container starts with it")
    return False


def _is_writable(mount: JsonTable) -> bool:
    """Whether a bind is writable: without an option it is, and the last one counts (as for mount(8))."""
    modes = [each for each in mount.texts("options", default=()) if each in ("ro", "rro", "rw", "rrw")]
    return not modes or modes[-1].endswith("rw")


def _tmpfs_option(text: str) -> str:
    """Return an option of a folder in memory; those that hold anyway are left to the caller."""
    if not _TMPFS_OPTION.fullmatch(text) and text not in ("rw", "nosuid", "nodev"):
        raise ValueError(f"{shown(text)} is not a known option of a tmpfs")
    return text


def _path(table: JsonTable, key: str, default: str | None = None) -> str:
    """Return an absolute path that leads nowhere but down."""
    value = table.value(key, str) if default is None else table.value(key, str, "") or default
    if not value.startswith("/") or ".." in value.split("/") or not value.isprintable():
        raise table.bad(key, f"{shown(value)} is not an absolute path without ..")
    return value


def _free_path(table: JsonTable, key: str) -> str:
    """Return a place in the container that hides none of what the lock names and the self-test runs."""
    value = _path(table, key)
    place = posixpath.normpath(f"/{value.lstrip('/')}").rstrip("/")
    for own in (SITE_PREFIX, OWN_FOLDER):
        if f"{own}/".startswith(f"{place}/") or place.startswith(f"{own}/"):
            raise table.bad(key, f"what is at {shown(value)} would hide locked files of {own}")
    return value


def _variable(line: str) -> str:
    name, equals, _ = line.partition("=")
    if not name or not equals or "\0" in line:
        raise ValueError(f"{shown(line)} is not NAME=VALUE")
    return line


def _groups(edit: JsonTable) -> list[int]:
    found = edit.value("additionalGids", list, [])
    if any(type(group) is not int or not 0 <= group <= _MOST_GROUP for group in found):
        raise edit.bad("additionalGids", f"{shown(found)} are not ids of groups")
    return [group for group in found if group]


def _call(hook: JsonTable) -> Mapping[str, Any]:
    lists = {key: hook.texts(key, _without_nul, ()) for key in ("args", "env")}
    call = {"path": _path(hook, "path"), **lists, "timeout": hook.integer("timeout", 0, 1 << 31, 0)}
    return {key: value for key, value in call.items() if value}


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it has a NUL")
    return text


def _refused(path: Path) -> AbstractContextManager[None]:
    return refused_as(HostError, f"{path}: not a valid CDI specification", ANEW)
