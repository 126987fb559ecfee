"""Pass the host's GPUs into a container: by CDI files, else as NVIDIA's device nodes and libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import HostError
from ..host import process
from ..host.machine import choosing_variable, visible_devices, visible_gpus
from ..host.sandbox import Bind, Device, is_device
from .cdi import (
    CDI_FOLDERS,
    IN_CONTAINER,
    KIND,
    GpuAccess,
    cdi_devices,
    edits_of,
    host_paths,
    is_gpu,
    without_gpu,
)

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
_HARMLESS_HOOKS = ("nvidia-ctk", "nvidia-cdi-hook")
"""Hooks that add neither nodes nor libraries to a container: they make links and caches. Others may."""
_MACHINES = {"x86_64": 62, "aarch64": 183}
"""The machine of an ELF file (/usr/include/elf.h)."""


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
    devices = cdi_devices(cdi_folders)
    if devices:
        access = edits_of(devices, visible)
        nodes = {Path(device.path): device.source for device in access.devices}
        return without_gpu(access) or _beyond(nodes, visible) or access
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
    if (problem := _beyond({node: node for node in nodes}, visible)) is not None:
        return problem
    for name, remedy in _NEEDED.items():
        if dev / name not in nodes:
            return f"{dev / name} is missing: {remedy}"
    denied = [node for node in nodes if not _may_open(node)]
    needed = denied if {*gpus} <= {*denied} else [node for node in denied if node.name in _NEEDED]
    return _denied(needed[0]) if needed else None


def _gpus_of(nodes: Iterable[Path]) -> list[Path]:
    return [node for node in nodes if re.fullmatch(r"nvidia\d+", node.name)]


def _beyond(nodes: Mapping[Path, Path], visible: Mapping[str, str]) -> str | None:
    """Return why the caller's choice names none of the GPUs of these nodes, or None; values: on this machine.

    None as well where a GPU is divided: the slices of MIG have numbers of their own.
    """
    gpus, first = [nodes[node] for node in _gpus_of(nodes)], visible_gpus(visible)[0]
    # CUDA leaves out single GPUs that it may not open, and counts the others; one that is missing is a fault.
    openable = len([gpu for gpu in gpus if not gpu.exists() or _may_open(gpu)])
    count = openable or len(gpus)
    divided = any("nvidia-caps" in node.parts for node in nodes)
    if not count or divided or not first.isdecimal() or (len(first) < 9 and int(first) < count):
        return None
    of = (
        f"you may open {count} of this machine's {len(gpus)}"
        if count < len(gpus)
        else f"this machine has {count}"
    )
    return _hidden(visible, f"but {of} GPU{'s' * (len(gpus) > 1)}, counted from 0")


def _may_open(node: Path) -> bool:
    return os.access(node, os.R_OK | os.W_OK)


def _hidden(visible: Mapping[str, str], why: str) -> str:
    return f"{choosing_variable()} is {visible['CUDA_VISIBLE_DEVICES'][:100]!r}, {why}"


def not_there(access: GpuAccess) -> HostError | None:
    """Return why a container with this access cannot start, or has no GPU: a CDI file may be out of date."""
    for path in host_paths(access):
        if not path.is_absolute() or not path.exists():
            return _out_of_date(f"{path}, which the CDI file for {KIND} names, is missing")
    nodes = {Path(device.path).name: device.source for device in access.devices}
    for node in nodes.values():
        if not is_device(node):
            return _out_of_date(f"{node}, which the CDI file for {KIND} names as a device node, is not one")
    if (lacking := _lacking_node(access)) is not None and not _may_add(access):
        return _out_of_date(lacking)
    denied = {name for name, node in nodes.items() if not _may_open(node)}
    gpus = {Path(device.path).name for device in access.devices if is_gpu(device.path)}
    needed = denied & {*_NEEDED} or (denied if gpus <= denied else set())
    if not needed:
        return None
    return HostError(
        _denied(nodes[min(needed)]),
        hint="ask to be added to that group, or use --gpu off: the CDI file is valid",
    )


def not_known(access: GpuAccess) -> str | None:
    """Return why CUDA may find no GPU with what a CDI file names, or None."""
    if (lacking := _lacking_node(access)) is not None:
        return f"{lacking}; a hook of that file may add it"
    if any(map(_has_libcuda, access.binds)):
        return None
    return f"the CDI file for {KIND} mounts no libcuda.so.1; a hook of that file or the image may have one"


def _out_of_date(problem: str) -> HostError:
    return HostError(problem, hint="regenerate it with `nvidia-ctk cdi generate`, or use --gpu off")


def _lacking_node(access: GpuAccess) -> str | None:
    """Return which node of a discrete GPU's driver is not passed in, or None.

    `nvidia-ctk` leaves out what is missing when it runs (NVIDIA/nvidia-container-toolkit#50).
    """
    names = [device.path for device in access.devices]
    if not all(re.fullmatch(r"/dev/nvidia\d+", name) for name in names if is_gpu(name)):
        return None  # WSL and Jetson boards have other nodes
    for name in _NEEDED:
        path = f"/dev/{name}"
        if path not in names and not any(bind.destination in (path, "/dev") for bind in access.binds):
            return f"the CDI file for {KIND} names no {path}, which every CUDA program opens"
    return None


def _may_add(access: GpuAccess) -> bool:
    """Whether a hook may add nodes and libraries, as the older nvidia-container-runtime-hook does."""
    paths = [Path(str(call["path"])) for calls in access.hooks.values() for call in calls]
    return any(path.name not in _HARMLESS_HOOKS for path in paths)


def _has_libcuda(bind: Bind) -> bool:
    """Whether a mount is, or has, the driver's library; in WSL its name is libcuda.so.1.1."""
    if Path(bind.destination).name.startswith("libcuda.so"):
        return True
    try:
        return bind.source.is_dir() and any(
            True for pattern in ("libcuda.so*", "lib*/libcuda.so*") for _ in bind.source.glob(pattern)
        )
    except OSError:
        return True  # a folder that cannot be listed may have it


def _denied(node: Path) -> str:
    return f"you may not read and write {node}: `ls -l {node}` shows its owner and group"


def misfit(access: GpuAccess, layers: Sequence[Path]) -> str | None:
    """Return why an image cannot be started with what CDI files name, or None; ``layers``: its files.

    A mount must hide none of them but the driver's, which some base images have, as an empty file or whole.
    """
    places = [bind.destination for bind in access.binds]
    for place in (*places, *access.folders):
        if any(map(_would_be_missed, _in_image(place, layers))):
            return f"the CDI file for {KIND} mounts something over {place}, which the image has"
    for call in access.hooks.get(IN_CONTAINER, ()):
        path = str(call["path"])
        bound = any(f"{path}/".startswith(f"{place.rstrip('/')}/") for place in places)
        if not bound and not any(_in_image(path, layers)):
            return f"the image has no {path}, which the CDI file for {KIND} runs in the container"
    return None


def _in_image(place: str, layers: Sequence[Path]) -> Iterator[Path]:
    """Yield the files or folders that the layers of an image have at a place."""
    parts = [part for part in place.split("/") if part not in ("", ".")]
    merged = ["usr"] * (parts[0] in ("bin", "lib", "lib64", "sbin"))  # links of Debian to those in /usr
    for layer in layers:
        for path in (layer.joinpath(*parts), layer.joinpath(*merged, *parts)):
            # No link is followed out of the layer.
            if os.path.lexists(path) and path.parent.resolve().is_relative_to(layer.resolve()):
                yield path


def _would_be_missed(path: Path) -> bool:
    if path.is_symlink():
        return False
    if path.is_dir():
        return any(path.iterdir())
    ours = "nvidia" in path.name.lower() or _DRIVER_LIBRARIES.fullmatch(path.name) is not None
    return path.stat().st_size > 0 and not ours


def gpu_missing() -> str | None:
    """Return why no GPU of this machine can be passed into a container, or None."""
    access = gpu_access()
    return access if isinstance(access, str) else None


def has_cdi(cdi_folders: Sequence[Path] = CDI_FOLDERS) -> bool:
    """Whether there is a CDI specification for NVIDIA's GPUs."""
    return bool(cdi_devices(cdi_folders))


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
