"""What nvidia-smi says of the driver and the GPUs, and which of these the caller's variables choose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from ...host import process
from ...host.machine import choosing_variable, visible_gpus

BROKEN = re.compile(r"nvidia-smi exited with (6|9|18)\b")
"""No GPU found, no driver loaded, or another version loaded than installed: no CUDA program runs then
(docs.nvidia.com/deploy/nvidia-smi, and nvmlReturn_t of its nvml-api)."""
_PARTLY = {14: None, 15: re.compile(r"(?:Driver|KMD) Version|, [0-9]+\.[0-9]+$|^GPU-", re.MULTILINE)}
"""Exit statuses with which it may have printed what was asked for, and what shows that it has: a damaged
infoROM, and a GPU that is lost, beside which others may work."""
_FAULT = re.compile(r"\[?(?:GPU is lost|GPU requires reset|Unknown Error|ERR!)\]?", re.IGNORECASE)
"""What it prints in the place of a fact."""
_WITHOUT_MIG = ("Disabled", "N/A", "[N/A]", "[Not Supported]")
_ORDER = (
    "CUDA counts different GPUs in its own order, the fastest first, not in that of nvidia-smi: "
    "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name them by UUID in CUDA_VISIBLE_DEVICES"
)


class Card(NamedTuple):
    """A GPU as nvidia-smi describes it."""

    name: str
    capability: str
    """Like ``8.0``."""
    fault: str = ""
    """Why no program can use it, if so."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver and the GPUs."""

    version: str
    cuda: str
    """The newest CUDA that it supports, like ``12.4``."""
    gpus: tuple[Card, ...]
    slices: tuple[tuple[str, ...] | None, ...] = ()
    """UUIDs of the MIG devices of each GPU; None where they are not known."""


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
    modes = [_column(program, field, len(gpus)) for field in ("compute_mode", "mig.mode.current")]
    slices = _slices(program, modes[1], head)
    cards = [_card(*row) for row in zip(gpus, *modes, slices, strict=True)]
    return Driver(version[1], cuda[1], tuple(cards), slices)


def _card(gpu: tuple[str, str], compute_mode: str, mig: str, slices: Sequence[str] | None) -> Card:
    name, _ = gpu
    if (said := next(filter(_FAULT.fullmatch, gpu), None)) is not None:
        return Card(
            *gpu, f"nvidia-smi says {said} of {'it' if said == name else name}", "restart the machine"
        )
    if mig == "Enabled" and slices == ():
        fault = f"{name} is in MIG mode and has no MIG devices, so CUDA does not find it"
        return Card(
            *gpu, fault, "`nvidia-smi mig -cgi PROFILE -C` makes one; `nvidia-smi -mig 0` ends that mode"
        )
    if compute_mode == "Prohibited":
        fault = f"the compute mode of {name} is Prohibited, so no CUDA program may use it"
        return Card(*gpu, fault, "`nvidia-smi -c DEFAULT`, as root, allows them")
    return Card(*gpu)


def _column(program: str, field: str, count: int) -> Sequence[str]:
    """Return a fact of each GPU, empty where this nvidia-smi does not know it."""
    try:
        values = [line.strip() for line in _asked(program, f"--query-gpu={field}")]
    except (process.ProcessFailed, process.ProcessTimeout):
        values = []
    return values if len(values) == count else [""] * count


def _slices(program: str, modes: Sequence[str], head: str) -> tuple[tuple[str, ...] | None, ...]:
    """Return the UUIDs of the MIG devices of each GPU; ``modes``: whether it is in MIG mode."""
    known: list[tuple[str, ...] | None] = [() if mode in _WITHOUT_MIG else None for mode in modes]
    if "Enabled" not in modes:
        return tuple(known)
    listed: list[list[str]] = []
    try:
        lines = _asked(program, "-L")
    except (process.ProcessFailed, process.ProcessTimeout):
        lines = []
    for line in lines:
        if re.match(r"GPU \d+:", line):
            listed.append([])
        elif listed and (found := re.search(r"\(UUID: *(MIG-[^)]+)\)", line)):
            listed[-1].append(found[1])
    if len(listed) == len(modes):
        return tuple(map(tuple, listed))
    none = "No MIG devices found" in head
    return tuple(() if none and mode == "Enabled" else each for mode, each in zip(modes, known, strict=True))


def _gpus(program: str) -> tuple[tuple[str, str], ...]:
    """Return name and compute capability of each GPU, which the nvidia-smi of driver 470 does not know."""
    try:
        rows = [row.rpartition(",") for row in _asked(program, "--query-gpu=name,compute_cap")]
    except process.ProcessFailed:
        return tuple((name.strip(), "[N/A]") for name in _asked(program, "--query-gpu=name"))
    return tuple((name.strip(), capability.strip()) for name, comma, capability in rows if comma)


def _asked(program: str, *query: str) -> list[str]:
    """Return what nvidia-smi prints, line by line."""
    argv = [program, *query, *(["--format=csv,noheader"] if query and query != ("-L",) else [])]
    done = process.run(argv, timeout=30, check=False)
    text = done.stdout.decode("utf-8", "replace")
    shows = _PARTLY.get(done.returncode)
    if done.returncode and (done.returncode not in _PARTLY or (shows and not shows.search(text))):
        raise process.ProcessFailed(argv, done.returncode, process.tail(done.stderr or done.stdout))
    return [line for line in text.splitlines() if not line.startswith("WARNING: infoROM")]


def chosen(found: Driver, visible: Mapping[str, str]) -> tuple[Sequence[Card], str]:
    """Return the GPUs that the caller's variables leave, and what keeps CUDA's order from being known, or "".

    ``visible``: as `visible_devices` returns it. Where it is not known which they are, all that may be meant
    are returned; no GPU: none of the UUIDs is one of this machine's.
    """
    ordered = len({*found.gpus}) <= 1 or visible.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    if "CUDA_VISIBLE_DEVICES" not in visible:
        return found.gpus, "" if ordered else _ORDER
    words = visible_gpus(visible)
    if words and not words[0].isdecimal():
        return _by_uuid(found, words)
    if ordered:
        here = [*map(str, range(len(found.gpus)))]
        numbers = [*map(int, takewhile(here.__contains__, words))]
        return [found.gpus[number] for number in numbers] or found.gpus, ""
    return found.gpus, f"CUDA_VISIBLE_DEVICES is {visible['CUDA_VISIBLE_DEVICES'][:100]}, and {_ORDER}"


def _by_uuid(found: Driver, words: Sequence[str]) -> tuple[Sequence[Card], str]:
    program = process.which("nvidia-smi")
    uuids = [""] * len(found.gpus) if program is None else _column(program, "uuid", len(found.gpus))
    slices = found.slices or (None,) * len(uuids)
    by_gpu = words[0].removeprefix("MIG-").startswith("GPU-")
    if ("" in uuids) if by_gpu else (None in slices and not _in_slices(words[0], slices)):
        unknown = f"which GPU the UUID in {choosing_variable()} is, nvidia-smi does not say"
        return found.gpus, unknown if len({*found.gpus}) > 1 else ""
    gpus: list[Card] = []
    for word in words:  # the beginning of a UUID is enough; one that is not valid hides those after it
        if not by_gpu:
            fits = _in_slices(word, slices)
        else:
            gpu = word.removeprefix("MIG-").partition("/")[0]
            fits = [number for number, uuid in enumerate(uuids) if uuid.startswith(gpu)]
            fits = [number for number in fits if word == gpu or slices[number] != ()]
        if len(fits) != 1:
            break
        gpus.append(found.gpus[fits[0]])
    return gpus, ""


def _in_slices(word: str, slices: Sequence[Sequence[str] | None]) -> list[int]:
    """Return the numbers of the GPUs that have a MIG device with such a UUID, one for each device."""
    return [number for number, each in enumerate(slices) for uuid in each or () if uuid.startswith(word)]
