"""What nvidia-smi says of the driver and the GPUs, and which of these the caller's variables choose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ...host import process
from ...host.machine import visible_gpus

BROKEN = re.compile(r"nvidia-smi exited with (6|9|18)\b")
"""No GPU found, no driver loaded, or another version loaded than installed: no CUDA program runs then
(docs.nvidia.com/deploy/nvidia-smi, and nvmlReturn_t of its nvml-api)."""
_PARTLY = {14: None, 15: re.compile(r"(?:Driver|KMD) Version|, [0-9]+\.[0-9]+$|^GPU-", re.MULTILINE)}
"""Exit statuses with which it may have printed what was asked for, and what shows that it has: a damaged
infoROM, and a GPU that is lost, beside which others may work."""
_FAULT = re.compile(r"\[?(?:GPU is lost|GPU requires reset|Unknown Error|ERR!)\]?", re.IGNORECASE)
"""What it prints in the place of a fact."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver and the GPUs."""

    version: str
    cuda: str
    """The newest CUDA that it supports, like ``12.4``."""
    gpus: tuple[tuple[str, str], ...]
    """Name and compute capability."""


def driver() -> Driver | str:
    """Return the driver, or the reason why it is unknown."""
    program = process.which("nvidia-smi")
    if program is None:
        return "nvidia-smi is not installed"
    try:
        head = "\n".join(_asked(program))
        gpus = _gpus(program)
    except (process.ProcessFailed, process.ProcessTimeout) as error:
        return f"nvidia-smi: {error}"
    # Both were renamed in driver 610 (docs.nvidia.com/deploy/nvidia-smi): KMD is the kernel's part.
    version = re.search(r"(?:Driver|KMD) Version: *([0-9.]+)", head)
    cuda = re.search(r"CUDA (?:UMD )?Version: *([0-9]+\.[0-9]+)", head)
    if version is None or cuda is None:
        failed = re.search(r"CUDA (?:UMD )?Version: *ERR!", head)
        return "nvidia-smi printed no driver version or no CUDA version" + (
            ": ERR!, so it could not use libcuda.so.1" if failed else ""
        )
    return Driver(version[1], cuda[1], gpus)


def _gpus(program: str) -> tuple[tuple[str, str], ...]:
    """Return name and compute capability of each GPU, which the nvidia-smi of driver 470 does not know."""
    try:
        rows = [row.rpartition(",") for row in _asked(program, "--query-gpu=name,compute_cap")]
    except process.ProcessFailed:
        return tuple((name.strip(), "[N/A]") for name in _asked(program, "--query-gpu=name"))
    return tuple((name.strip(), capability.strip()) for name, comma, capability in rows if comma)


def _asked(program: str, *query: str) -> list[str]:
    """Return what nvidia-smi prints, line by line."""
    argv = [program, *query, *(["--format=csv,noheader"] if query else [])]
    done = process.run(argv, timeout=30, check=False)
    text = done.stdout.decode("utf-8", "replace")
    shows = _PARTLY.get(done.returncode)
    if done.returncode and (done.returncode not in _PARTLY or (shows and not shows.search(text))):
        raise process.ProcessFailed(argv, done.returncode, process.tail(done.stderr or done.stdout))
    return [line for line in text.splitlines() if not line.startswith("WARNING: infoROM")]


def has_fault(gpu: tuple[str, str]) -> bool:
    """Whether nvidia-smi could not ask a GPU: no program can use it."""
    return any(map(_FAULT.fullmatch, gpu))


def chosen(found: Driver, visible: Mapping[str, str]) -> tuple[Sequence[tuple[str, str]], str]:
    """Return the GPUs that the caller's variables leave, and what keeps that from being known, or nothing.

    ``visible``: as `visible_devices` returns it. Where it is not known which they are, all that may be meant
    are returned; no GPU: none of the UUIDs is one of this machine's.
    """
    if "CUDA_VISIBLE_DEVICES" not in visible:
        return found.gpus, ""
    words = visible_gpus(visible)
    if words and not words[0].isdecimal():
        return _by_uuid(found, [word.removeprefix("MIG-").partition("/")[0] for word in words])
    if len({*found.gpus}) == 1 or visible.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        here = [*map(str, range(len(found.gpus)))]
        numbers = [*map(int, takewhile(here.__contains__, words))]
        return [found.gpus[number] for number in numbers] or found.gpus, ""
    return found.gpus, (
        f"CUDA_VISIBLE_DEVICES={visible['CUDA_VISIBLE_DEVICES'][:100]} counts the GPUs in CUDA's own order, "
        "the fastest first, not in that of nvidia-smi: set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name them by UUID"
    )


def _by_uuid(found: Driver, words: Sequence[str]) -> tuple[Sequence[tuple[str, str]], str]:
    program = process.which("nvidia-smi")
    try:
        uuids = [] if program is None else _asked(program, "--query-gpu=uuid")
    except (process.ProcessFailed, process.ProcessTimeout):
        uuids = []
    if not words[0].startswith("GPU-") or len(uuids) != len(found.gpus):
        unknown = "which GPU the UUID in CUDA_VISIBLE_DEVICES is, nvidia-smi does not say"
        return found.gpus, unknown if len({*found.gpus}) > 1 else ""
    gpus = []
    for word in words:  # the beginning of a UUID is enough; one that is not valid hides those after it
        fits = [gpu for gpu, uuid in zip(found.gpus, uuids, strict=True) if uuid.strip().startswith(word)]
        if len(fits) != 1:
            break
        gpus += fits
    return gpus, ""
