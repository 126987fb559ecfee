"""The machine's architecture, and a hash of all that the results of a program on it may depend on."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import HostError
from . import process

_FACTS = ("sys/kernel/random/boot_id", "cpuinfo", "driver/nvidia/version", "driver/nvidia/gpus/*/information")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_SETTINGS = "uuid,driver_version,ecc.mode.current,mig.mode.current,compute_mode,power.limit,clocks.max.sm"
_VARYING = re.compile(r"^(cpu MHz|bogomips)\b.*$", re.MULTILINE)


def identity(proc: Path = Path("/proc"), dev: Path = Path("/dev")) -> str | None:
    """Return a hash of the boot, kernel, processors and GPUs, and of which may be used and how.

    None where the kernel does not say which boot this is, or the driver not how the GPUs are set.
    """
    facts = [
        platform.release(),
        repr(sorted(os.sched_getaffinity(0))),
        repr(sorted(visible_devices().items())),
    ]
    try:
        facts.append(_gpu_settings(proc, dev))
        for path in (found for pattern in _FACTS for found in sorted(proc.glob(pattern))):
            facts += [path.relative_to(proc).as_posix(), _VARYING.sub("", path.read_text(errors="replace"))]
    except (OSError, process.ProcessFailed, process.ProcessTimeout):
        return None
    if not any(fact.endswith("boot_id") for fact in facts):
        return None
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def _gpu_settings(proc: Path, dev: Path) -> str:
    """Return what may change of the GPUs without a restart, like ECC, MIG, its slices and libraries.

    Raises `OSError` where there are GPUs, and no nvidia-smi to ask.
    """
    if not (proc / "driver/nvidia").is_dir() and not (dev / "dxg").exists():  # dxg: a GPU in WSL
        return ""
    slices = sorted(str(path) for path in proc.glob("driver/nvidia/capabilities/gpu*/mig/gi*/**/access"))
    program = process.which("nvidia-smi")
    if program is None:
        raise FileNotFoundError("nvidia-smi")
    query = [program, f"--query-gpu={_SETTINGS}", "--format=csv,noheader"]
    # The first driver library of that name there is taken, such as that of cuda-compat.
    folders = os.environ.get("LD_LIBRARY_PATH", "")
    return repr((slices, folders, process.run(query, timeout=30).stdout))


def visible_devices(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables by which a program that the caller starts takes some of the GPUs alone.

    ``NVIDIA_VISIBLE_DEVICES`` counts where it names GPUs by their UUID. In a container, where it is usual, a
    number is the host's, which has more GPUs; ``void``, ``all`` and ``none`` say what a runtime has to do.
    """
    chosen = {name: environ[name] for name in _VISIBLE if name in environ}
    named = environ.get("NVIDIA_VISIBLE_DEVICES", "")
    if "CUDA_VISIBLE_DEVICES" not in chosen and re.fullmatch(r"(GPU|MIG)-[^,]+(,(GPU|MIG)-[^,]+)*", named):
        chosen["CUDA_VISIBLE_DEVICES"] = named
    return chosen


def choosing_variable(environ: Mapping[str, str] = os.environ) -> str:
    """Return the name of the variable from which `visible_devices` takes the choice of GPUs, for messages."""
    return _VISIBLE[0] if _VISIBLE[0] in environ else "NVIDIA_VISIBLE_DEVICES"


def visible_gpus(visible: Mapping[str, str]) -> list[str]:
    """Return the numbers or UUIDs of the GPUs that `visible_devices` leaves; ``0`` where it says nothing.

    As CUDA reads ``CUDA_VISIBLE_DEVICES``: a number may have more behind it, the first that is not valid
    hides all after it, such as Slurm's NoDevFiles, and none is left where one is there twice (CUDA C++
    Programming Guide; torch/cuda/__init__.py, _parse_visible_devices).
    """
    text = visible.get("CUDA_VISIBLE_DEVICES", "0")
    prefix = text[:4] if text.startswith(("GPU-", "MIG-")) else ""
    found: list[str] = []
    for word in text.split(","):
        number = re.match(r"\s*\+?([0-9]+)", word)
        each = word.strip() if prefix else (number[1].lstrip("0") or "0") if number else ""
        if each in found:
            return []
        if not each.startswith(prefix) or not each:
            break
        found.append(each)
    return found


def architecture() -> str:
    """Return Debian's name of this machine: ``amd64`` or ``arm64``. Raises `HostError` on any other."""
    machine = platform.machine()
    names = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    if machine not in names:
        raise HostError(
            f"this machine is a {machine}; images are made for x86_64 and aarch64",
            hint="run reprobuild on a machine of the kind that the image is for",
        )
    return names[machine]
