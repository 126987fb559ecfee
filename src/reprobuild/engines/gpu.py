"""Pass the host's GPUs into a container: by a CDI specification, else as NVIDIA's device nodes and libraries.

CDI is the Container Device Interface (cncf-tags/container-device-interface, SPEC.md): a file that says which
nodes, mounts, variables and hooks a device needs; `nvidia-ctk cdi generate` writes it for a driver.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import HostError
from ..host import process
from ..host.home import open_regular
from ..host.machine import visible_devices, visible_gpus
from ..host.sandbox import Bind, Device, is_device
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX
from ..request.json_reader import load_json
from ..request.table import JsonTable, Table, TableError, refused_as, shown
from ..request.yaml_reader import load_yaml

CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
KIND = "nvidia.com/gpu"

_LIBRARY_FOLDER = "/usr/local/nvidia/lib64"
_DRIVER_LIBRARIES = re.compile(r"lib(cuda|cudadebugger|nvcuvid|nvidia-[a-z0-9-]+)\.so(\.\d+)+")
"""The driver's, by family: some are named by their soname, others by the driver's version alone
(NVIDIA/libnvidia-container, src/nvc_info.c)."""
_LIBRARY_FOLDERS = ("/usr/local/nvidia/lib64", "/run/opengl-driver/lib", "/usr/lib/wsl/lib")
"""Where it is on clusters and in containers, on NixOS, and in WSL, of which ldconfig need not know."""
_ELSEWHERE = {"dxg": "a GPU in WSL", "nvmap": "a GPU of a Jetson board"}
"""Nodes of machines whose GPU needs others than /dev/nvidia*, and libraries of other names
(NVIDIA/nvidia-container-toolkit, pkg/nvcdi)."""
_NEEDED = {
    "nvidiactl": "nobody has started the driver since this machine's start (nvidia-modprobe -c0 makes it)",
    "nvidia-uvm": "the driver's memory module is not loaded (nvidia-modprobe -u -c0 loads it)",
}
"""What every CUDA program opens beside its GPU, and what to do where it is missing."""
_MACHINES = {"x86_64": 62, "aarch64": 183}
"""The machine of an ELF file (/usr/include/elf.h)."""
_OF_DRIVER = ("NVIDIA_VISIBLE_", "NVIDIA_DRIVER_", "CUDA_VISIBLE_", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH")
"""Variables that say which GPUs, and where the driver's libraries are."""
_TMPFS_BYTES = 64 << 20
_LARGEST = 8 << 20
"""Bytes of a CDI file; those of `nvidia-ctk` have some 30,000."""
_MOST_GROUP = (1 << 32) - 2
_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
_ANEW = "regenerate it with `nvidia-ctk cdi generate`, or use --gpu off"


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuAccess:
    """The options to add to a container; none where Docker or Podman add their own."""

    devices: Sequence[Device] = ()
    binds: Sequence[Bind] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    hooks: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    folders: Mapping[str, int] = field(default_factory=dict)
    """Empty folders in memory, by path, with their bytes at most."""
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


def gpu_access(
    cdi_folders: Sequence[Path] = CDI_FOLDERS, dev: Path = Path("/dev"), proc: Path = Path("/proc")
) -> GpuAccess | str:
    """Return how to pass this machine's GPUs into a container, or the reason why it is impossible.

    All of them, but for those that the caller's own variables hide. Raises `HostError` if there is a CDI
    specification for them that cannot be read.
    """
    visible = visible_devices()
    if not visible_gpus(visible):
        return _hidden(visible, "which hides all GPUs of this machine")
    devices = _cdi_devices(cdi_folders)
    if devices:
        access = _from_cdi(devices, visible)
        return _beyond([Path(device.path) for device in access.devices], visible) or access
    return _by_nodes(dev, proc, visible)


def _by_nodes(dev: Path, proc: Path, visible: Mapping[str, str]) -> GpuAccess | str:
    generate = "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` writes the file"
    for node, machine in _ELSEWHERE.items():
        # In WSL the node is there for any maker's GPU.
        if is_device(dev / node) and "libcuda.so.1" in _driver_libraries():
            return f"{machine} needs CDI: {generate}"
    nodes = [n for n in sorted(dev.glob("nvidia*")) if is_device(n)]
    if not any(re.fullmatch(r"nvidia\d+", node.name) for node in nodes):
        return f"no NVIDIA GPU on this machine (no {dev}/nvidia0, and no CDI file for {KIND})"
    if any(proc.glob("driver/nvidia/capabilities/gpu*/mig/gi*")):
        return f"MIG needs CDI: {generate}"
    if (problem := _problem_of_nodes(dev, nodes, visible)) is not None:
        return problem
    libraries = _driver_libraries()
    if "libcuda.so.1" not in libraries:
        return (
            "libcuda.so.1 was not found by ldconfig, in LD_LIBRARY_PATH, or in "
            f"{', '.join(_LIBRARY_FOLDERS)}: the driver's libraries are not installed on this machine"
        )
    # Triton links with -lcuda.
    libraries = {"libcuda.so": libraries["libcuda.so.1"], **libraries}
    return GpuAccess(
        devices=[Device(path=f"/dev/{node.name}", source=node) for node in nodes],
        binds=[
            Bind(source=path.resolve(), destination=f"{_LIBRARY_FOLDER}/{name}")
            for name, path in sorted(libraries.items())
        ],
        env={"LD_LIBRARY_PATH": _LIBRARY_FOLDER, **visible},
    )


def _problem_of_nodes(dev: Path, nodes: Sequence[Path], visible: Mapping[str, str]) -> str | None:
    """Return why a CUDA program could not open what it needs, or None."""
    gpus = _gpus_of(nodes)
    if (problem := _beyond(nodes, visible)) is not None:
        return problem
    for name, remedy in _NEEDED.items():
        if dev / name not in nodes:
            return f"{dev / name} is missing: {remedy}"
    denied = [node for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    # CUDA leaves out single GPUs that it may not open.
    needed = denied if {*gpus} <= {*denied} else [node for node in denied if node.name in _NEEDED]
    return (
        f"you may not read and write {needed[0]}: `ls -l {needed[0]}` shows its owner and group"
        if needed
        else None
    )


def _gpus_of(nodes: Sequence[Path]) -> list[Path]:
    return [node for node in nodes if re.fullmatch(r"nvidia\d+", node.name)]


def _beyond(nodes: Sequence[Path], visible: Mapping[str, str]) -> str | None:
    """Return why the caller's choice names none of the GPUs of these nodes, or None.

    None as well where a GPU is divided: the slices of MIG have numbers of their own.
    """
    count, first = len(_gpus_of(nodes)), visible_gpus(visible)[0]
    divided = any("nvidia-caps" in node.parts for node in nodes)
    if not count or divided or not first.isdecimal() or (len(first) < 9 and int(first) < count):
        return None
    return _hidden(visible, f"but this machine has {count} GPU{'s' * (count > 1)}, counted from 0")


def _hidden(visible: Mapping[str, str], why: str) -> str:
    return f"CUDA_VISIBLE_DEVICES is {visible['CUDA_VISIBLE_DEVICES'][:100]!r}, {why}"


def not_there(access: GpuAccess) -> str | None:
    """Return why a container with this access cannot start, or has no GPU: a CDI file may be out of date."""
    hooks = [Path(str(call["path"])) for calls in access.hooks.values() for call in calls]
    paths = [*(device.source for device in access.devices), *(bind.source for bind in access.binds), *hooks]
    for path in paths:
        if not path.is_absolute() or not path.exists():
            return f"{path}, which the CDI file for {KIND} names, is missing"
    return None if access.devices else f"the CDI file for {KIND} names no device"


def gpu_missing() -> str | None:
    """Return why no GPU of this machine can be passed into a container, or None."""
    access = gpu_access()
    return access if isinstance(access, str) else None


def has_cdi(cdi_folders: Sequence[Path] = CDI_FOLDERS) -> bool:
    """Whether there is a CDI specification for NVIDIA's GPUs."""
    return bool(_cdi_devices(cdi_folders))


@dataclass(frozen=True, slots=True)
class _CdiDevice:
    """A device of a CDI file: its own edits, and those that the file has for all."""

    path: Path
    edits: JsonTable
    common: JsonTable


def _cdi_devices(folders: Sequence[Path]) -> dict[str, _CdiDevice]:
    """Return the devices of all files by name; the device ``all`` of a file means all of that file.

    A later folder outranks an earlier one, and its ``all`` means all that there is; two files of one folder
    must not define the same device (SPEC.md of CDI, and its packages).
    """
    found: dict[str, _CdiDevice] = {}
    for folder in folders:
        here: dict[str, _CdiDevice] = {}
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.json")]):  # no other ending (SPEC.md)
            spec = _read(path)
            if spec.get("kind") != KIND:
                continue
            for name, device in _devices_of(spec, path).items():
                if name in here:
                    raise HostError(
                        f"{path}: {here[name].path} defines the GPU {name}, too",
                        hint="remove one of the two CDI files, or use --gpu off",
                    )
                here[f"{name} of {path}" if name in ("all", "") else name] = device
        whole = any(name.startswith("all of ") for name in here)
        found = here if whole else found | here
    return found


def _devices_of(spec: Mapping[str, Any], path: Path) -> dict[str, _CdiDevice]:
    with _refused(path):
        whole = _without_null(JsonTable(spec))
        entries = [_without_null(each) for each in whole.tables("devices", default=())]
        devices = {_name(each): each for each in entries}
        if len(devices) < len(entries):
            raise TableError("it defines a device twice")
        common = _edits_of(whole)
        every = {name: _edits_of(each) for name, each in devices.items()} or {"": JsonTable({})}
    return {name: _CdiDevice(path, edits, common) for name, edits in every.items()}


def _edits_of(table: JsonTable) -> JsonTable:
    key = "containerEdits"
    return _without_null(JsonTable(table.value(key, dict, {}), table.where(key)))


def _without_null(table: Table) -> JsonTable:
    """Return a table without the keys whose value is null, which Go reads as missing."""
    return JsonTable({key: value for key, value in table.data.items() if value is not None}, table.place)


def _name(device: JsonTable) -> str:
    """Return a device's name; without quotes YAML has a number there."""
    number = type(device.data.get("name")) is int
    return str(device.integer("name", 0, 1 << 32)) if number else device.value("name", str)


def _driver_libraries() -> dict[str, Path]:
    """Return the driver's libraries by name, the first that the dynamic linker would find."""
    own = [Path(text) for text in re.split("[:;]", os.environ.get("LD_LIBRARY_PATH", "")) if text]
    found: dict[str, Path] = {}
    # The toolkit's stubs of libcuda are for linking alone.
    for folder in (each for each in own if each.name != "stubs"):
        found = _libraries_in(folder) | found
    found = _known_to_ldconfig() | found
    for folder in map(Path, _LIBRARY_FOLDERS):
        found = _libraries_in(folder) | found
    return found


def _libraries_in(folder: Path) -> dict[str, Path]:
    try:
        files = [*folder.glob("lib*.so.*")] if folder.is_dir() else []
    except OSError:  # the dynamic linker goes on without it, too
        return {}
    return {each.name: each for each in files if _DRIVER_LIBRARIES.fullmatch(each.name) and _is_ours(each)}


def _is_ours(path: Path) -> bool:
    """Whether a library is for this machine's programs, which have 64 bits."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return False
    machine = _MACHINES.get(os.uname().machine)
    return head[:5] == b"\x7fELF\x02" and int.from_bytes(head[18:20], "little") == machine


def _known_to_ldconfig() -> dict[str, Path]:
    program = process.which("ldconfig")
    # Without a cache, as on NixOS, it fails. It reads one file.
    listing = b"" if program is None else process.run([program, "-p"], check=False, timeout=30).stdout
    found: dict[str, Path] = {}
    for line in os.fsdecode(listing).splitlines():
        name, _, path = line.strip().partition(" => ")
        base, _, kind = name.partition(" ")
        ours = "x86-64" in kind + "x86-64" * ("AArch64" in kind) and _DRIVER_LIBRARIES.fullmatch(base)
        if path and ours and Path(path).exists():  # the cache may be older than the driver
            found.setdefault(base, Path(path))
    return found


def _read(path: Path) -> Mapping[str, Any]:
    """Return a CDI file; an empty table for one that cannot be read and is not about NVIDIA's GPUs."""
    data = b""
    try:
        with open_regular(path) as file:
            data = file.read(_LARGEST + 1)
        _hold_size(data)
        spec = load_json(data) if path.suffix == ".json" else load_yaml(data.decode())
    except (OSError, ValueError) as error:
        # Another vendor's broken file is no reason to refuse.
        if KIND.encode() in data or "nvidia" in path.name:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise HostError(f"{path}: not a valid CDI specification: {reason}", hint=_ANEW) from None
        return {}
    if isinstance(spec, dict):
        return spec
    with _refused(path):
        if "nvidia" in path.name:
            raise TableError("not a table")
    return {}


def _hold_size(data: bytes) -> None:
    if len(data) > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST:,} bytes")


def _from_cdi(devices: Mapping[str, _CdiDevice], visible: Mapping[str, str]) -> GpuAccess:
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
    folders: dict[str, int] = {}
    env: dict[str, str] = {}
    groups: list[int] = []
    hooks: dict[str, list[Mapping[str, Any]]] = {}
    for edit in edits:
        for node in map(_without_null, edit.tables("deviceNodes", default=())):
            path = _free_path(node, "path")
            devices[path] = Device(path=path, source=Path(_path(node, "hostPath", path) or path))
        for mount in map(_without_null, edit.tables("mounts", default=())):
            target = _free_path(mount, "containerPath")
            if mount.value("type", str, "") == "tmpfs":
                folders[target] = _TMPFS_BYTES
                continue
            writable = "rw" in mount.texts("options", default=())
            source = Path(_path(mount, "hostPath"))
            binds[target] = Bind(source=source, destination=target, writable=writable)
        env |= dict(line.split("=", 1) for line in edit.texts("env", _variable, ()))
        groups += _groups(edit)
        for hook in map(_without_null, edit.tables("hooks", default=())):
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
    return refused_as(HostError, f"{path}: not a valid CDI specification", _ANEW)
