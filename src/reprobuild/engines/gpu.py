"""How the host's GPUs get into a container: by a CDI specification, else NVIDIA's device nodes and libraries.

CDI is the Container Device Interface (cncf-tags/container-device-interface, SPEC.md): a file that says which
nodes, mounts, variables and hooks a device needs; `nvidia-ctk cdi generate` writes it for a driver.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import HostError
from ..host import process
from ..host.sandbox import Bind, Device, is_device
from ..request.yaml_reader import load_yaml

CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
KIND = "nvidia.com/gpu"

_LIBRARY_FOLDER = "/usr/local/nvidia/lib64"
_DRIVER_LIBRARIES = re.compile(r"lib(cuda|cudadebugger|nvidia-[a-z-]+|nvcuvid)\.so\.\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuAccess:
    """What to add to a container."""

    devices: Sequence[Device]
    binds: Sequence[Bind] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    hooks: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


def gpu_access(cdi_folders: Sequence[Path] = CDI_FOLDERS, dev: Path = Path("/dev")) -> GpuAccess | str:
    """Return how all GPUs of this machine get into a container, or the reason why none does.

    Raises `HostError` if there is a CDI specification for them that cannot be read.
    """
    for path, spec in _specifications(cdi_folders):
        return _from_cdi(spec, path)
    nodes = [n for n in sorted(dev.glob("nvidia*")) if is_device(n)]
    if not any(re.fullmatch(r"nvidia\d+", node.name) for node in nodes):
        return f"no NVIDIA GPU on this machine (no {dev}/nvidia0, and no CDI file for {KIND})"
    uvm = dev / "nvidia-uvm"
    if uvm not in nodes:
        return f"{uvm} is missing: the driver's memory module is not loaded (nvidia-modprobe -u -c0 loads it)"
    libraries = _driver_libraries()
    if not any(path.name.startswith("libcuda.so") for path in libraries):
        return (
            "libcuda.so.1 is not known to ldconfig: the driver's libraries are not installed on this machine"
        )
    return GpuAccess(
        devices=[Device(path=f"/dev/{node.name}", source=node) for node in nodes],
        binds=[
            Bind(source=path.resolve(), destination=f"{_LIBRARY_FOLDER}/{path.name}") for path in libraries
        ],
        env={"LD_LIBRARY_PATH": _LIBRARY_FOLDER},
    )


def gpu_missing() -> str | None:
    """Return why no GPU of this machine can be passed into a container, or None."""
    access = gpu_access()
    return access if isinstance(access, str) else None


def has_cdi(cdi_folders: Sequence[Path] = CDI_FOLDERS) -> bool:
    """Whether there is a CDI specification for NVIDIA's GPUs."""
    return any(True for _ in _specifications(cdi_folders))


def _specifications(folders: Sequence[Path]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    # A later folder outranks an earlier one (SPEC.md of CDI, and its packages).
    for folder in reversed(folders):
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml"), *folder.glob("*.json")]):
            spec = _read(path)
            if spec.get("kind") == KIND:
                yield path, spec


def _driver_libraries() -> list[Path]:
    listing = process.run([process.require("ldconfig", "to find the GPU driver's libraries"), "-p"]).stdout
    found: dict[str, Path] = {}
    for line in listing.decode().splitlines():
        name, _, path = line.strip().partition(" => ")
        base, _, kind = name.partition(" ")
        if path and "x86-64" in kind + "x86-64" * ("AArch64" in kind) and _DRIVER_LIBRARIES.fullmatch(base):
            found.setdefault(base, Path(path))
    return [found[name] for name in sorted(found)]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        spec = json.loads(text) if path.suffix == ".json" else load_yaml(text)
    except (OSError, ValueError, RecursionError) as error:
        raise _bad(path, str(error)) from None
    if not isinstance(spec, dict):
        raise _bad(path, "not a table")
    return spec


def _from_cdi(spec: Mapping[str, Any], path: Path) -> GpuAccess:
    """Return the device ``all`` if the file has it, else every device, each with the edits common to all."""
    try:
        devices = {str(d["name"]): d.get("containerEdits") or {} for d in spec.get("devices") or []}
        chosen = [devices["all"]] if "all" in devices else [devices[name] for name in sorted(devices)]
        edits = [spec.get("containerEdits") or {}, *chosen]
        return _merged(edits)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _bad(path, f"{type(error).__name__}: {error}") from None


def _merged(edits: Iterable[Mapping[str, Any]]) -> GpuAccess:
    devices: dict[str, Device] = {}
    binds: dict[str, Bind] = {}
    env: dict[str, str] = {}
    hooks: dict[str, list[Mapping[str, Any]]] = {}
    for edit in edits:
        for node in edit.get("deviceNodes") or []:
            devices[node["path"]] = Device(
                path=node["path"], source=Path(node.get("hostPath") or node["path"])
            )
        for mount in edit.get("mounts") or []:
            writable = "rw" in (mount.get("options") or [])
            target = mount["containerPath"]
            binds[target] = Bind(source=Path(mount["hostPath"]), destination=target, writable=writable)
        for line in edit.get("env") or []:
            key, _, value = line.partition("=")
            env[key] = value
        for hook in edit.get("hooks") or []:
            call = {key: hook[key] for key in ("path", "args", "env", "timeout") if hook.get(key)}
            kept = hooks.setdefault(_hook_kind(hook["hookName"]), [])
            if call not in kept:
                kept.append(call)
    return GpuAccess(devices=list(devices.values()), binds=list(binds.values()), env=env, hooks=hooks)


def _hook_kind(name: str) -> str:
    if name not in (
        "prestart",
        "createRuntime",
        "createContainer",
        "startContainer",
        "poststart",
        "poststop",
    ):
        raise ValueError(f"unknown hook {name!r}")
    return name


def _bad(path: Path, reason: str) -> HostError:
    return HostError(
        f"{path}: not a valid CDI specification: {reason}",
        hint="regenerate it with `nvidia-ctk cdi generate`, or use --gpu off",
    )
