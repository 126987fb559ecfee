"""Shows, on the machine it runs on, whether this environment's PyTorch gives the same bits for the same seed.

    python selftest.py [--json] [--device auto|cpu|cuda] [--full | --prove | --cost] [--only NAME ...]
                       [--list] [--time-limit SECONDS]

One file of the standard library, torch and numpy; it runs in any image, also in ones that reprobuild did not
build (their settings are judged like any others, and rightly fail). It writes its report, and scratch files
below the folder for temporary files; it needs no network. The checks of several processes need /dev/shm and a
loopback interface.

Two fresh interpreters run every check at the same time. Each runs a check twice and compares the bytes of the
results ("within"); the parent, which never imports torch, compares the two interpreters ("across"). Settings
are compared with what they have to be ("setting"). A control does the opposite: it has to see results differ
with determinism off, or it says that it saw nothing. Results that are the same on every machine ("golden")
are compared with the values in golden.json, beside this file, by torch's version and the architecture.

The plain battery takes seconds. ``--full`` adds what takes longer, ``--prove`` runs the controls alone, each
of which has to see nondeterminism come and go here, and ``--cost`` measures what determinism costs.

A check is one function below ``@check``; its docstring says what it proves. It takes the device ("cpu" or
"cuda") and returns its results by name (tensors, arrays, bytes, or values with a telling repr), or None. It
raises `Failed` with what differed, `Inconclusive` or `NotRun` with the reason; any other exception, and the
death of the process, is a failure with its traceback.

The report is one JSON object on standard output; everything else goes to standard error:

    schema      3
    program     sha256 of this file: results of another program are not comparable
    mode        "battery", "full" or "prove"; "part" when --only chose some checks of the first two
    verdict     "passed" or "failed"; inconclusive and not-run checks do not fail. With --prove "passed" only
                when no control is inconclusive, else "inconclusive"
    versions    python, torch, numpy, cuda, cudnn (null where there is none)
    scope       the kind of machine: cpu (model, capability, threads, ...), gpu (name, sm_count, driver, ...)
                or null
    gpu         tested (bool) and reason (why not)
    checks      name, proves, compares, device, status (passed, failed, inconclusive, not-run), reason,
                detail [{what, expected, got}], results {name: sha256 of shape, type and raw bytes},
                scope: where the results hold, on "any" machine with these versions, or on one "kind",
                values {name: {type, data}}: of each float result at most 32 values, evenly spread, as
                base64 of little-endian bytes, so that reports of two machines can be compared in ULP,
                notes (what was seen beside the outcome), fingerprint (sha256 over results) or null,
                calls (how often the operation was called, in all runs and both interpreters, on its
                smallest shape; 0 where nothing is compared), rate (a deviation in this share of calls
                is found with 99 %; null without calls), seconds, traceback
    seconds, peak_memory_bytes (of the larger of the two interpreters)

With ``--cost`` it holds schema, program, mode "cost", versions, scope, gpu and seconds as above, and

    costs       name, device, on and off (seconds, the fastest round), ratio (on / off), rounds, and reason:
                why it was not measured, else empty; then the numbers are null

Exit status: 0 passed, 1 a check failed, 2 bad arguments, 3 --prove was inconclusive.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import ctypes
import faulthandler
import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import math
import multiprocessing
import multiprocessing.connection
import os
import platform
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
import typing
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any, BinaryIO, TYPE_CHECKING, TextIO, TypeVar


# --- names ------------------------------------------------------------------------------------------------
# Names that the host's side knows too: it imports this module, and no other of the program.

FORBIDDEN = (
    "PYTORCH_TUNABLEOP_ENABLED",
    "PYTORCH_TUNABLEOP_TUNING",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM",
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE",
    "TORCHINDUCTOR_USE_FAST_MATH",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_CUDNN_USE_HEURISTIC_MODE_B",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_LINALG_PREFER_CUSOLVER",
    "TORCH_MKLDNN_MATMUL_MIN_DIM",
    "TORCH_MKLDNN_MATMUL_MIN_SIZE",
)
"""Variables that change an algorithm or its numbers, in torch 2.4 to 2.13; none may be set."""

CUDA_LIBRARY = re.compile(
    r"lib(cudart|cublas|cublasLt|cudnn\w*|cufft|cufftw|cufile|cufile_rdma|cupti|curand|cusolver|cusolverMg"
    r"|cusparse|cusparseLt|nccl|nvblas|nvJitLink|nvrtc|nvrtc-builtins|nvshmem\w*|nvToolsExt)"
    r"(?:-[0-9a-f]{4,})?\.so(?:\.[0-9.]+)?"
)
"""The file names of CUDA's libraries, those that torch's wheels bundle too (``libcudart-9335f6a2.so.12``).

The first group is the library. The driver's own (``libcuda.so``) are not among them: the host brings them.
"""


# --- outcomes ---------------------------------------------------------------------------------------------
# What a check may say: its results, or why there are none.

Results = typing.Optional[typing.Mapping[str, object]]  # evaluated, by Python 3.8 too


class Failed(Exception):  # noqa: N818 -- an outcome
    """What the check guards against is the case. ``detail`` says what differed: what, expected, got."""

    def __init__(self, reason: str, detail: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(reason)
        self.detail = [dict(line) for line in detail]


class Inconclusive(Exception):  # noqa: N818 -- an outcome
    """A control saw no nondeterminism, so it proves nothing on this machine."""


class NotRun(Exception):  # noqa: N818 -- an outcome
    """The check does not apply to this machine or this build of torch."""


@dataclass
class Outcome:
    """What one interpreter saw of one check on one device."""

    status: str
    reason: str = ""
    detail: list[dict[str, str]] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    calls: int = 0
    seconds: float = 0.0
    traceback: str = ""


NOTES: list[str] = []  # of the check that is being run


def note(text: str) -> None:
    """Put a line beside the outcome of the check that is being run."""
    if text not in NOTES:
        NOTES.append(text)


# --- location ---------------------------------------------------------------------------------------------
# Where the program and the image's other files of reprobuild lie.

PROGRAM = Path(__file__)
"""The one file that the modules have become; it starts itself again for each interpreter."""


def image_file(name: str) -> Path:
    """Return the path of a file beside the program, such as ``manifest.tsv``; it need not be there."""
    return PROGRAM.with_name(name)


def program_hash() -> str:
    """Return the sha256 of this program, as 64 hex digits; another program gives other results."""
    return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()


def locked() -> dict[str, Any]:
    """Return what reprobuild has written into the image's lock; raises `NotRun` where there is none."""
    lock = image_file("pylock.toml")
    try:
        text = lock.read_text("utf-8")
    except OSError:
        raise NotRun(f"{lock} does not exist") from None
    try:
        parser: Any = importlib.import_module("tomllib")
    except ImportError:  # before Python 3.11
        parser = importlib.import_module("pip._vendor.tomli")
    table: dict[str, Any] = parser.loads(text)["tool"]["reprobuild"]
    return table


# --- registry ---------------------------------------------------------------------------------------------
# The checks by name, as their modules register them.

@dataclass(frozen=True)
class Check:
    """A check as `check` registered it; ``run`` takes the device."""

    name: str
    proves: str
    compares: tuple[str, ...]
    devices: tuple[str, ...]
    run: Callable[[str], Results]
    part: str = "battery"
    anywhere: bool = False
    order: int = 0
    hooked: bool = False
    missing: Callable[[str], str] | None = None
    once: bool = False


CHECKS: dict[str, Check] = {}
SETTING, WITHIN, ACROSS, GOLDEN, CONTROL = "setting", "within", "across", "golden", "control"
BOTH = ("cpu", "cuda")


def check(
    *compares: str,
    order: int,
    devices: tuple[str, ...] = ("cpu",),
    part: str = "battery",
    anywhere: bool = False,
    hooked: bool = False,
    missing: Callable[[str], str] | None = None,
    once: bool = False,
) -> Callable[[Callable[[str], Results]], Callable[[str], Results]]:
    """Register a function as a check: its name with dashes, and what its docstring says that it proves.

    ``order``: checks run in the order of this number, which is unique. ``part``: "battery", "full" or
    "prove". ``anywhere``: its results on the CPU depend on the versions alone, as those of a golden check do.
    ``hooked``: it cannot pass without the import hook, so it is not run where that is known to be gone.
    ``missing``: returns what the check lacks on a device, and how to add it, or nothing.
    ``once``: one of the two interpreters runs it, since it is about files, and takes long.
    """

    def register(function: Callable[[str], Results]) -> Callable[[str], Results]:
        name = function.__name__.replace("_", "-")
        proves = (function.__doc__ or name).rstrip(".")
        CHECKS[name] = Check(
            name=name,
            proves=proves,
            compares=compares,
            devices=devices,
            run=function,
            part=part,
            anywhere=anywhere or GOLDEN in compares,
            order=order,
            hooked=hooked,
            missing=missing,
            once=once,
        )
        return function

    return register


def in_order() -> list[Check]:
    """Return all checks in the order in which they run."""
    return sorted(CHECKS.values(), key=lambda each: each.order)


# --- libraries --------------------------------------------------------------------------------------------
# torch and NumPy, imported at their first use.

class _Lazy:
    """A module that is imported at its first use, so that the parent, --list and --help never pay for it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


__all__ = ["np", "torch"]
if TYPE_CHECKING:
    import numpy as np
    import torch
else:
    np, torch = _Lazy("numpy"), _Lazy("torch")


# --- exact ------------------------------------------------------------------------------------------------
# Exact inputs, exact comparisons.

KEPT = 32  # values of each float result that the report holds


def numbers(*shape: int, salt: int = 0, dtype: str = "float32", device: str = "cpu") -> torch.Tensor:
    """Return a tensor of values from -1 to 1 that are the same on every machine; no generator is involved.

    The values have 53 bits before they are rounded to ``dtype``: sums of shorter ones can be exact, and then
    hide a changed order of summation. From SplitMix64 (Steele, Lea, Flood 2014), in integers that wrap.
    """
    count = int(np.prod(shape, dtype=np.int64))
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(salt << 32)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    unit = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return torch.from_numpy(unit * 2 - 1).reshape(shape).to(getattr(torch, dtype)).to(device)


def indices(count: int, below: int, *, salt: int = 0, device: str = "cpu") -> torch.Tensor:
    """Return ``count`` int64 indices from 0 to ``below - 1``, the same on every machine."""
    unit = (numbers(count, salt=salt, dtype="float64") + 1) / 2
    return (unit * below).long().clamp_(max=below - 1).to(device)


def raw(value: Any) -> bytes:
    """Return the bytes of a result: those of a tensor or array as they lie in memory, in C order."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().contiguous()
        # NumPy has no bfloat16.
        value = (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        return bytes(value.tobytes())
    return repr(value).encode()


def fingerprint(value: Any) -> str:
    """Return the sha256 of a result's shape, type and bytes, as 64 hex digits."""
    kind = f"{tuple(value.shape)} {value.dtype} " if hasattr(value, "dtype") else ""
    return hashlib.sha256(kind.encode() + raw(value)).hexdigest()


def kept(value: Any) -> dict[str, str] | None:
    """Return at most `KEPT` values of a float result, evenly spread, for the report; else None."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        value = value.detach().cpu()
        flat = (torch.view_as_real(value) if value.is_complex() else value).reshape(-1)
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f":
        flat = torch.from_numpy(np.ascontiguousarray(value)).reshape(-1)
    else:
        return None
    chosen = flat[:: max(1, -(-flat.numel() // KEPT))]
    return {"type": str(flat.dtype)[6:], "data": base64.b64encode(raw(chosen)).decode()}


def flattened(value: object) -> bytes:
    """Return the bytes of a result that may be nested in dicts, tuples and lists."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return b"".join(map(flattened, value)) if isinstance(value, (tuple, list)) else raw(value)


def difference(name: str, first: Any, second: Any) -> dict[str, str] | None:
    """Return None when two results have the same bytes, else what differs."""
    expected, got = fingerprint(first), fingerprint(second)
    if expected == got:
        return None
    what = name
    if hasattr(first, "shape") and hasattr(second, "shape") and first.shape == second.shape:
        a, b = doubles(first), doubles(second)
        differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
        what += f": {int(differs.sum())} of {a.size} values"
        if differs.any():
            what += f", by {float(np.abs(a - b)[differs].max()):.3g} at most"
    return {"what": what, "expected": expected, "got": got}


def doubles(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Return a tensor or array of any type as one of float64, or complex128, for a message."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value if value.is_complex() else value.double()).numpy()
    return np.asarray(value, dtype=np.complex128 if np.iscomplexobj(value) else np.float64)


def must_be(what: str, *, got: object, expected: object) -> None:
    """Raise `Failed` unless a setting is what it has to be."""
    if got != expected:
        raise Failed(
            f"{what} is {got}, expected {expected}",
            [{"what": what, "expected": str(expected), "got": str(got)}],
        )


def must_differ(what: str, first: object, second: object) -> None:
    """Raise `Failed` when two results that have nothing in common have the same bytes."""
    if raw(first) == raw(second):
        raise Failed(
            f"{what} gives the same numbers",
            [{"what": what, "expected": "different numbers", "got": "the same"}],
        )


def must_repeat(run: Callable[[], object], times: int) -> None:
    """Raise `Failed` when a function's result is not the same in so many runs."""
    first = run()
    for _ in range(times - 1):
        again = run()
        if flattened(first) != flattened(again):
            lines = [difference("result", first, again)] if hasattr(first, "dtype") else []
            raise Failed("it differs from run to run", [line for line in lines if line])


# --- power ------------------------------------------------------------------------------------------------
# How rare a deviation a check finds.
#
# A deviation that befalls each call with probability p is found by n calls unless it befalls none of them,
# so with probability 1 - (1 - p) ** n.

_Value = TypeVar("_Value")
CONFIDENCE = 0.99
RATES = {"battery": 1 / 20, "full": 1 / 200}
"""The rate of deviations that `steady` finds with `CONFIDENCE`."""
RUNS = 4
"""How often a check is run for one report: twice in each of two interpreters."""


def calls_for(rate: float) -> int:
    """Return how many calls find a deviation of this rate with `CONFIDENCE`."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - rate))


def rate_for(calls: int) -> float:
    """Return the smallest rate of deviations that so many calls find with `CONFIDENCE`."""
    return float(1 - (1 - CONFIDENCE) ** (1 / calls))


@dataclass
class Repeats:
    """How often `steady` calls an operation in one run of a check, and has in the one that is being run."""

    wanted: int
    made: int = 1

    def set_for(self, mode: str) -> None:
        """Want as many as the mode's rate needs: 23 in each of four runs, 230 with "full"."""
        self.wanted = math.ceil(calls_for(RATES[mode]) / RUNS)


REPEATED = Repeats(math.ceil(calls_for(RATES["battery"]) / RUNS))


def steady(run: Callable[[], Mapping[str, _Value]]) -> dict[str, _Value]:
    """Return what ``run`` gives, as "small NAME"; it is for shapes that take well below a millisecond.

    It is called as often as `REPEATED` wants, beside the large shapes of the check, which cost too much for
    that. Raises `Failed` when a call differs from the first.
    """
    first = run()
    expected = flattened(first)
    for number in range(2, REPEATED.wanted + 1):
        again = run()
        if flattened(again) != expected:
            lines = [difference(name, value, again[name]) for name, value in first.items()]
            reason = f"call {number} of {REPEATED.wanted} differs from the first"
            raise Failed(reason, [line for line in lines if line])
    REPEATED.made = REPEATED.wanted
    return {f"small {name}": value for name, value in first.items()}


# --- gradients --------------------------------------------------------------------------------------------
# Outputs together with their gradients.

def with_gradients(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the output of a function of tensors, and the gradient of each; the output's own is `numbers`."""
    inputs = tuple(value.detach().requires_grad_() for value in inputs)
    output = function(*inputs)
    seed = numbers(*output.shape, salt=99, device=str(output.device)).to(output.dtype)
    gradients = torch.autograd.grad(output, inputs, grad_outputs=seed)
    return {"output": output, **{f"gradient{i}": gradient for i, gradient in enumerate(gradients)}}


def filled(module: torch.nn.Module, device: str) -> torch.nn.Module:
    """Return a module on a device, its parameters small `numbers`."""
    with torch.no_grad():
        for salt, parameter in enumerate(module.parameters()):
            parameter.copy_(numbers(*parameter.shape, salt=50 + salt) * 0.2)
    return module.to(device)


def module_with_gradients(module: torch.nn.Module, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the output of a module, and the gradients of its parameters and of its first input."""
    parameters = dict(module.named_parameters())
    first = inputs[0].detach().requires_grad_()
    output = module(first, *inputs[1:])
    output = output[0] if isinstance(output, tuple) else output
    seed = numbers(*output.shape, salt=99, device=str(output.device)).to(output.dtype)
    gradients = torch.autograd.grad(output, [first, *parameters.values()], grad_outputs=seed)
    return {"output": output, **dict(zip(("input", *parameters), gradients))}


# --- flags ------------------------------------------------------------------------------------------------
# torch's deterministic flag and its version.

def set_flag(*, on: bool) -> None:
    """Set torch's deterministic flag by the call that costs nothing, else by the public one (1.25 s)."""
    try:
        torch._C._set_deterministic_algorithms(on, warn_only=False)
    except (AttributeError, TypeError):
        torch.use_deterministic_algorithms(on)


AT_START: dict[str, bool] = {}
"""What `fill_memory` found in this process: whether torch filled new memory before."""


def fill_memory(*, on: bool = True) -> None:
    """Have torch fill new memory with NaN, so that an operation that reads what it has not written shows.

    Up to torch 2.1 it never does, and this does nothing. Keeps in `AT_START` what it found at first.
    """
    get = getattr(torch._C, "_get_deterministic_fill_uninitialized_memory", None)
    if get is not None:
        AT_START.setdefault("fill", get())
        torch._C._set_deterministic_fill_uninitialized_memory(on)


@contextlib.contextmanager
def setting(*, deterministic: bool, threads: int | None = None) -> Iterator[None]:
    """Set the deterministic flag (and the thread count) for a while."""
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    try:
        set_flag(on=deterministic)
        if threads is not None:
            torch.set_num_threads(threads)
        yield
    finally:
        set_flag(on=before[0])
        torch.set_num_threads(before[1])


def version() -> tuple[int, int]:
    """Return torch's major and minor version, which decides some expectations."""
    major, minor = re.findall(r"\d+", torch.__version__)[:2]
    return int(major), int(minor)


# --- graphs -----------------------------------------------------------------------------------------------
# Work that is captured in a CUDA graph.

def graph_of(run: Callable[[], object], calls: int = 1) -> Any:
    """Return a CUDA graph of what a function does, after some calls outside of it, as PyTorch asks for.

    See https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture.
    """
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(calls):
            run()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


# --- nvml -------------------------------------------------------------------------------------------------
# How the GPUs are set up, as NVIDIA's management library says (docs.nvidia.com/deploy/nvml-api).
#
# It comes with the driver. Where it is missing, or does not say, a fact is None: not known.

NOT_SUPPORTED = 3  # nvmlReturn_t; a card for screens has no ECC and no MIG
SM_CLOCK = 1  # nvmlClockType_t


class Management:
    """The library, opened; every answer is None where there is none."""

    def __init__(self) -> None:
        self.library: Any = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            self.library = None if library.nvmlInit_v2() else library
        except (OSError, AttributeError):
            return

    def driver(self) -> str | None:
        """Return the driver's version."""
        text = ctypes.create_string_buffer(96)
        size = ctypes.c_uint(len(text))
        if self.library is None or self.library.nvmlSystemGetDriverVersion(text, size):
            return None
        return text.value.decode("ascii", "replace") or None

    def settings(self, bus: str) -> dict[str, Any]:
        """Return ECC, MIG, compute mode, highest clock and power limit of the GPU at a PCI bus."""
        handle = ctypes.c_void_p()
        where = bus.encode("ascii"), ctypes.byref(handle)
        known = self.library is not None and bus
        found = handle if known and not self.library.nvmlDeviceGetHandleByPciBusId_v2(*where) else None
        switch = {0: "off", 1: "on"}
        modes = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
        ecc, mig = (self._number(f"nvmlDeviceGet{name}Mode", found, pending=True) for name in ("Ecc", "Mig"))
        return {
            "ecc": switch.get(ecc, ecc),
            "mig": switch.get(mig, mig),
            "compute_mode": modes.get(mode := self._number("nvmlDeviceGetComputeMode", found), mode),
            "max_sm_mhz": self._number("nvmlDeviceGetMaxClockInfo", found, SM_CLOCK),
            "power_limit_mw": self._number("nvmlDeviceGetEnforcedPowerLimit", found),
        }

    def _number(self, function: str, handle: Any, *arguments: int, pending: bool = False) -> Any:
        """Return what a function writes into its last argument, but for what is to come after a restart."""
        if handle is None or not hasattr(self.library, function):
            return None
        value, later = ctypes.c_uint(), ctypes.c_uint()
        places = [ctypes.byref(value), *([ctypes.byref(later)] if pending else [])]
        status = getattr(self.library, function)(handle, *map(ctypes.c_uint, arguments), *places)
        return "not supported" if status == NOT_SUPPORTED else None if status else value.value


def bus_of(device: int) -> str:
    """Return the PCI bus of a GPU by CUDA's own number, which need not be NVML's; else nothing."""
    text = ctypes.create_string_buffer(64)
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        handle = ctypes.c_int()
        if cuda.cuDeviceGet(ctypes.byref(handle), ctypes.c_int(device)):
            return ""
        return (
            "" if cuda.cuDeviceGetPCIBusId(text, len(text), handle) else text.value.decode("ascii", "replace")
        )
    except (OSError, AttributeError):
        return ""


def shared_by_mps() -> str:
    """Return whether NVIDIA's Multi-Process Service shares out the GPU, and what share this process has."""
    folder = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")  # noqa: S108 -- its default
    pipe = Path(folder) / "control"
    share = os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
    return ("on" if pipe.exists() else "off") + (f", {share} % of the threads" if share else "")


# --- machine ----------------------------------------------------------------------------------------------
# The versions and the kind of machine that results belong to.

SCHEMA = 3


def gpu_missing() -> str:
    """Return why CUDA cannot be tested here, or nothing when it can."""
    if torch.version.cuda is None:
        return "this build of torch has no CUDA"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing driver; the reason is in the report
        if torch.cuda.is_available():
            return ""
    return "no GPU is visible here, or its driver is too old for this torch"


def cpu_capability() -> str:
    """Return for which processors torch has chosen its kernels: ``AVX2``, ``DEFAULT``."""
    if hasattr(torch.backends, "cpu"):
        return str(torch.backends.cpu.get_cpu_capability())
    said = re.search(r"CPU capability usage: (\w+)", torch.__config__.show())  # torch 2.0
    return "unknown" if said is None else said[1]


def cpu_scope() -> dict[str, Any]:
    """Return what decides the bits of results on the CPU, beside the versions."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8").split("\n\n")[0]
    except OSError:
        text = ""
    info = dict(re.findall(r"^([^\t\n]+?)\s*: *(.*)$", text, re.MULTILINE))
    kind = [info.get(key, "?") for key in ("cpu family", "model", "stepping")]
    return {
        "model": info.get("model name", platform.machine()),
        "kind": "family {} model {} stepping {}".format(*kind),
        "machine": platform.machine(),
        "capability": cpu_capability(),
        "threads": torch.get_num_threads(),
        "cores": len(os.sched_getaffinity(0)),
        "mkl_cbwr": os.environ.get("MKL_CBWR"),
        "onednn_max_cpu_isa": os.environ.get("ONEDNN_MAX_CPU_ISA"),
    }


def gpu_of(device: int, management: Management) -> dict[str, Any]:
    """Return what one GPU is, and how it is set up."""
    properties = torch.cuda.get_device_properties(device)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "sm_count": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        **management.settings(bus_of(device)),
    }


def nccl_version() -> str | None:
    """Return the version of NCCL, or nothing where this torch has none."""
    try:
        found = torch.cuda.nccl.version()
    except (AttributeError, RuntimeError):
        return None
    return ".".join(map(str, found)) if isinstance(found, tuple) else str(found)


def gpu_scope() -> dict[str, Any]:
    """Return what decides the bits of results on the GPUs, beside the versions.

    Of the first GPU fact by fact, since the checks run there; of all in ``devices``. Null: not known.
    """
    management = Management()
    gpus = [gpu_of(number, management) for number in range(torch.cuda.device_count())]
    driver = None
    with contextlib.suppress(OSError):  # WSL 2 has no such module
        driver = Path("/sys/module/nvidia/version").read_text("utf-8").strip()
    return {
        **gpus[0],
        "devices": "; ".join(", ".join(f"{key} {value}" for key, value in gpu.items()) for gpu in gpus),
        "driver": driver or management.driver(),
        "mps": shared_by_mps(),
        "nccl": nccl_version(),
        # What decides how cuBLASLt splits a product; its default depends on the GPU (pytorch/pytorch#182669).
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "cublaslt_workspace": os.environ.get("CUBLASLT_WORKSPACE_SIZE"),
        "cublaslt_unified": os.environ.get("TORCH_CUBLASLT_UNIFIED_WORKSPACE"),
        "nccl_algo": os.environ.get("NCCL_ALGO"),
        "nccl_proto": os.environ.get("NCCL_PROTO"),
    }


def facts(gpu_reason: str) -> dict[str, Any]:
    """Return versions, scope and gpu of a report; ``gpu_reason``: why no GPU is tested, or nothing."""
    return {
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version() if torch.version.cuda else None,
        },
        "scope": {"cpu": cpu_scope(), "gpu": None if gpu_reason else gpu_scope()},
        "gpu": {"tested": not gpu_reason, "reason": gpu_reason},
    }


# --- operations -------------------------------------------------------------------------------------------
# Operations whose results have to repeat.

def convolution(device: str, kind: str, size: Sequence[int], **options: int) -> dict[str, torch.Tensor]:
    """Return output and gradients of torch.nn.KIND from 8 to 16 channels, a batch of 8, a kernel of 3.

    Beside it, of a small one: from 2 to 4 channels, a batch of 2, 6 values along each side.
    """
    large, small = (
        filled(getattr(torch.nn, kind)(channels, 2 * channels, 3, **options), device) for channels in (8, 2)
    )
    few = numbers(2, 2, *[6] * len(size), device=device)
    return both(large, numbers(8, 8, *size, device=device), small, few)


def both(
    large: torch.nn.Module, values: torch.Tensor, small: torch.nn.Module, few: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return output and gradients of a module, and those of a small one, which `steady` repeats."""
    return {**module_with_gradients(large, values), **steady(lambda: module_with_gradients(small, few))}


@check(WITHIN, ACROSS, devices=BOTH, order=300)
def conv1d(device: str) -> Results:
    """A convolution repeats, 1-D, forward and backward."""
    return convolution(device, "Conv1d", [512])


@check(WITHIN, ACROSS, devices=BOTH, order=305)
def conv2d(device: str) -> Results:
    """A convolution repeats, 2-D, forward and backward."""
    return convolution(device, "Conv2d", [48, 48], padding=1)


@check(WITHIN, ACROSS, devices=BOTH, order=310)
def conv3d(device: str) -> Results:
    """A convolution repeats, 3-D, forward and backward."""
    return convolution(device, "Conv3d", [10, 12, 12])


@check(WITHIN, ACROSS, devices=BOTH, order=315)
def conv_transposed(device: str) -> Results:
    """A transposed convolution repeats, forward and backward."""
    return convolution(device, "ConvTranspose2d", [24, 24], stride=2)


@check(WITHIN, ACROSS, devices=BOTH, order=320)
def depthwise_batchnorm(device: str) -> Results:
    """Depthwise convolution and batch norm repeat, forward and backward."""

    def module(channels: int) -> torch.nn.Module:
        nn = torch.nn
        layers = nn.Conv2d(channels, channels, 3, groups=channels), nn.BatchNorm2d(channels), nn.ReLU()
        return filled(nn.Sequential(*layers), device)

    large, small = numbers(8, 16, 32, 32, device=device), numbers(2, 4, 6, 6, device=device)
    return both(module(16), large, module(4), small)


@check(WITHIN, ACROSS, devices=BOTH, order=325)
def matmul(device: str) -> Results:
    """A product of matrices repeats, forward and backward, also in bfloat16 and float64."""
    results = {}
    for dtype in ("float32", "float64", "bfloat16"):
        a, b = (numbers(192, 192, salt=salt, dtype=dtype, device=device) for salt in (1, 2))
        results.update({f"{dtype} {k}": v for k, v in with_gradients(torch.matmul, a, b).items()})
    results["mv"] = torch.mv(numbers(500, 700, device=device), numbers(700, salt=1, device=device))
    a, b = (numbers(16, 16, salt=salt, device=device) for salt in (1, 2))

    def small() -> dict[str, torch.Tensor]:
        found = {"bfloat16": torch.matmul(a.bfloat16(), b.bfloat16()), "mv": torch.mv(a, b[0])}
        found["float64"] = torch.matmul(a.double(), b.double())
        return {**with_gradients(torch.matmul, a, b), **found}

    return {**results, **steady(small)}


@check(WITHIN, ACROSS, devices=BOTH, order=330)
def bmm(device: str) -> Results:
    """A batch of products repeats, forward and backward, also baddbmm."""
    a, b, c = (numbers(8, 96, 96, salt=salt, device=device) for salt in (1, 2, 3))

    def products(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        added = with_gradients(torch.baddbmm, c, a, b)
        named = {f"baddbmm {name}": value for name, value in added.items()}
        return {**with_gradients(torch.bmm, a, b), **named}

    small = [numbers(3, 8, 8, salt=salt, device=device) for salt in (3, 1, 2)]
    return {**products(c, a, b), **steady(lambda: products(*small))}


@check(WITHIN, ACROSS, devices=BOTH, order=335)
def bmm_sparse(device: str) -> Results:
    """A product of a sparse and a dense batch repeats."""

    def factors(batch: int, size: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        dense = numbers(batch, size, size, salt=1)
        sparse = torch.where(dense.abs() > 0.8, dense, torch.zeros(())).to_sparse().to(device)
        return sparse, numbers(batch, size, width, salt=2, device=device)

    large, small = factors(4, 128, 64), factors(2, 16, 4)
    return {"output": torch.bmm(*large), **steady(lambda: {"output": torch.bmm(*small)})}


def accumulated(
    device: str, how: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
) -> Results:
    """Return 100,000 rows of 8 added up in 1,000 slots by ``how(slots, index, rows)``, with gradients.

    Beside it, 200 rows in 10 slots.
    """

    def adding(count: int, places: int) -> Callable[[], dict[str, torch.Tensor]]:
        rows, index = numbers(count, 8, device=device), indices(count, places, salt=3, device=device)
        slots = numbers(places, 8, salt=1, device=device)
        return lambda: with_gradients(lambda slots, rows: how(slots, index, rows), slots, rows)

    return {**adding(100_000, 1000)(), **steady(adding(200, 10))}


@check(WITHIN, ACROSS, devices=BOTH, order=340)
def index_add(device: str) -> Results:
    """index_add repeats when many rows go to one place."""
    return accumulated(device, lambda slots, index, rows: slots.index_add(0, index, rows))


@check(WITHIN, ACROSS, devices=BOTH, order=345)
def scatter_add(device: str) -> Results:
    """scatter_add repeats when many values go to one place."""
    return accumulated(
        device, lambda slots, index, rows: slots.scatter_add(0, index[:, None].expand(-1, 8), rows)
    )


@check(WITHIN, ACROSS, devices=BOTH, order=350)
def index_put(device: str) -> Results:
    """index_put that accumulates repeats when many rows go to one place."""
    return accumulated(device, lambda slots, index, rows: slots.index_put((index,), rows, accumulate=True))


@check(WITHIN, ACROSS, devices=BOTH, order=355)
def embedding(device: str) -> Results:
    """The gradient of an embedding repeats when words recur."""

    def looking(count: int, rows: int) -> Callable[[], dict[str, torch.Tensor]]:
        words, table = indices(count, rows, device=device), numbers(rows, 32, device=device)
        return lambda: with_gradients(lambda table: torch.nn.functional.embedding(words, table), table)

    return {**looking(20_000, 500)(), **steady(looking(100, 10))}


@check(WITHIN, ACROSS, devices=BOTH, order=360)
def lstm(device: str) -> Results:
    """An LSTM repeats, forward and backward."""
    # Without dropout: cuDNN's is known to vary within a process (pytorch/pytorch#90168).
    small = filled(torch.nn.LSTM(4, 6), device)
    large = filled(torch.nn.LSTM(32, 48, num_layers=2), device)
    return both(large, numbers(24, 8, 32, device=device), small, numbers(2, 2, 4, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=365)
def gru(device: str) -> Results:
    """A GRU repeats, forward and backward."""
    large, small = filled(torch.nn.GRU(32, 48), device), filled(torch.nn.GRU(4, 6), device)
    return both(large, numbers(24, 8, 32, device=device), small, numbers(2, 2, 4, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=370)
def layer_norm(device: str) -> Results:
    """Layer norm repeats, forward and backward."""
    large, small = filled(torch.nn.LayerNorm(512), device), filled(torch.nn.LayerNorm(16), device)
    return both(large, numbers(256, 512, device=device), small, numbers(4, 16, device=device))


@check(WITHIN, ACROSS, devices=BOTH, order=375)
def softmax(device: str) -> Results:
    """Softmax repeats, forward and backward."""

    def softened(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return with_gradients(lambda x: torch.softmax(x * 8, dim=-1), x)

    small = numbers(8, 20, device=device)
    return {**softened(numbers(256, 1000, device=device)), **steady(lambda: softened(small))}


@check(WITHIN, ACROSS, devices=BOTH, order=380)
def sums(device: str) -> Results:
    """Sums and means of a million values repeat."""

    def totals(x: torch.Tensor, wide: torch.Tensor) -> dict[str, torch.Tensor]:
        rows = x.view(1000, -1).sum(0)
        return {"sum": x.sum(), "mean": x.mean(), "norm": x.norm(), "float64 sum": wide.sum(), "rows": rows}

    x, wide = numbers(1_000_000, device=device), numbers(300_000, dtype="float64", device=device)
    few = x[:2000].clone(), wide[:2000].clone()
    return {**totals(x, wide), **steady(lambda: totals(*few))}


@check(WITHIN, ACROSS, devices=BOTH, order=385)
def attention(device: str) -> Results:
    """Scaled dot product attention repeats, each backend that there is."""
    results = {}
    for backend in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        only = attention_by(backend)
        if only is None:
            continue
        try:
            with only, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns why a backend does not do
                found = attended(device, backend)
        except RuntimeError as error:
            # torch's words for a backend that does not do; anything else, as want of memory, is a failure.
            # MATH is the only one that every device has.
            if backend == "MATH" or not any(words in str(error) for words in NO_KERNEL):
                raise
            note(f"{backend}: not available here")
            continue
        results.update({f"{backend} {name}": value for name, value in found.items()})
    note("backends: " + ", ".join(sorted({name.split()[0] for name in results})))
    return results


NO_KERNEL = ("No available kernel", "No viable backend")


def attention_by(backend: str) -> AbstractContextManager[object] | None:
    """Return a context in which attention has one backend; None where this torch lacks it."""
    try:
        module = importlib.import_module("torch.nn.attention")
        kind = getattr(module.SDPBackend, backend, None)
        found: AbstractContextManager[object] | None = None if kind is None else module.sdpa_kernel(kind)
    except (ImportError, AttributeError):  # torch before 2.3 has a switch for each
        switches = {"FLASH_ATTENTION": "flash", "MATH": "math", "EFFICIENT_ATTENTION": "mem_efficient"}
        if backend not in switches:
            return None
        chosen = {f"enable_{name}": key == backend for key, name in switches.items()}
        found = torch.backends.cuda.sdp_kernel(**chosen)
    return found


def attended(device: str, backend: str) -> dict[str, torch.Tensor]:
    """Return attention's output and gradients; RuntimeError where the backend cannot do it."""
    # On CUDA the flash and cuDNN kernels take half precision only.
    half = device == "cuda" and backend in ("FLASH_ATTENTION", "CUDNN_ATTENTION")
    dtype, function = "float16" if half else "float32", torch.nn.functional.scaled_dot_product_attention
    large, small = (
        [numbers(*shape, salt=salt, dtype=dtype, device=device) for salt in (1, 2, 3)]
        for shape in ((2, 4, 96, 32), (1, 2, 16, 16))
    )
    return {**with_gradients(function, *large), **steady(lambda: with_gradients(function, *small))}


@check(WITHIN, ACROSS, devices=BOTH, order=390)
def svd_lowrank(device: str) -> Results:
    """svd_lowrank, which draws random numbers, repeats after a seed."""

    def approximated(a: torch.Tensor, q: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(7)
        return dict(zip("usv", torch.svd_lowrank(a, q=q)))

    small = numbers(12, 10, device=device)
    return {**approximated(numbers(200, 100, device=device), 6), **steady(lambda: approximated(small, 2))}


@check(WITHIN, ACROSS, devices=BOTH, order=395)
def decompositions(device: str) -> Results:
    """Decompositions of matrices repeat: eigh, svd, solve."""

    def decomposed(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        values, vectors = torch.linalg.eigh(a + a.T)
        u, s, v = torch.linalg.svd(a)
        solved = torch.linalg.solve(a, b)
        return {"eigenvalues": values, "eigenvectors": vectors, "u": u, "s": s, "v": v, "solve": solved}

    large, small = (
        [numbers(size, wide, salt=salt, dtype="float64", device=device) for salt, wide in ((0, size), (1, 4))]
        for size in (96, 8)
    )
    return {**decomposed(*large), **steady(lambda: decomposed(*small))}


@check(WITHIN, ACROSS, devices=BOTH, order=400)
def fft(device: str) -> Results:
    """Fourier transforms repeat."""

    def transformed(line: torch.Tensor, grid: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"rfft": torch.fft.rfft(line), "fft2": torch.view_as_real(torch.fft.fft2(grid))}

    large = numbers(4, 4099, device=device), numbers(8, 64, 60, device=device)
    small = numbers(2, 31, device=device), numbers(2, 8, 6, device=device)
    return {**transformed(*large), **steady(lambda: transformed(*small))}


@check(WITHIN, ACROSS, devices=BOTH, order=405)
def elementwise(device: str) -> Results:
    """Functions of single values repeat."""

    def applied(x: torch.Tensor) -> dict[str, torch.Tensor]:
        names = ("exp", "sin", "cos", "tanh", "erf", "sigmoid")
        return {**{name: getattr(torch, name)(x * 4) for name in names}, "log": torch.log(x.abs() + 1e-3)}

    x = numbers(20_000, device=device)
    few = x[:100].clone()
    return {**applied(x), **steady(lambda: applied(few))}


# --- data -------------------------------------------------------------------------------------------------
# Data loaders and samplers: the same order, the same random numbers.

class Draws:
    """A data set of 16 items: the index, a number from torch, NumPy and random, and whether the flag is on.

    With ``held``, a numpy Generator of its own draws in NumPy's place.
    """

    def __init__(self, *, held: bool = False) -> None:
        self.rng = np.random.default_rng(11) if held else None

    def __len__(self) -> int:  # noqa: D105 -- the class says what it is
        return 16

    def __getitem__(self, index: int) -> tuple[int, float, float, float, bool]:  # noqa: D105 -- likewise
        own = np.random.rand() if self.rng is None else self.rng.random()
        on = bool(torch.are_deterministic_algorithms_enabled())
        return index, torch.rand((), dtype=torch.float64).item(), own, random.random(), on  # noqa: S311


def reseed_held(_: int) -> None:
    """Give a worker's copy of the data set's Generator a seed of its own; a worker_init_fn."""
    info: Any = torch.utils.data.get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


def loaded(workers: int, start: str | None = None, data: Any = None, **options: Any) -> dict[str, Any]:
    """Return an epoch of `Draws`, shuffled, after one seed; ``start``: "fork" or "spawn"."""
    torch.manual_seed(11)
    np.random.seed(11)
    random.seed(11)
    dataset: Any = data or Draws()
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=4,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context=start if workers else None,
        **options,
    )
    columns = [torch.cat(column) for column in zip(*loader)]
    if len(columns[1].unique()) != len(columns[1]):
        raise Failed("two items got the same random number from torch")
    must_be(
        "torch.are_deterministic_algorithms_enabled() in workers", got=bool(columns[4].all()), expected=True
    )
    return dict(zip(("order", "torch", "numpy", "random"), columns))


def loaded_both(workers: int, start: str | None = None) -> Results:
    """Return an epoch without and one with a Generator of its own; another seed gives another order."""
    own = loaded(workers, start, generator=torch.Generator().manual_seed(5))
    other = loaded(workers, start, generator=torch.Generator().manual_seed(6)) if start != "spawn" else None
    if other:
        must_differ("a DataLoader's order with another Generator", own["order"], other["order"])
    plain = loaded(workers, start)
    return {**plain, **{f"generator {name}": value for name, value in own.items()}}


@check(WITHIN, ACROSS, anywhere=True, order=600, hooked=True)
def dataloader(_: str) -> Results:
    """A DataLoader repeats: order and transforms, in the process itself, with and without a generator."""
    return loaded_both(0)


@check(WITHIN, ACROSS, anywhere=True, order=605, hooked=True)
def dataloader_workers(_: str) -> Results:
    """A DataLoader repeats: order and transforms, in two forked workers, with and without a generator."""
    return loaded_both(2, "fork")


@check(ACROSS, part="full", anywhere=True, order=610, hooked=True)
def dataloader_spawn(_: str) -> Results:
    """A DataLoader repeats: order and transforms, in two spawned workers, with and without a generator."""
    return loaded_both(2, "spawn")


@check(WITHIN, ACROSS, anywhere=True, order=615, hooked=True)
def dataloader_held(_: str) -> Results:
    """A numpy Generator that a data set holds is copied into each worker, and a worker_init_fn mends that."""
    copied = loaded(2, "fork", Draws(held=True))["numpy"]
    distinct = len(copied.unique())
    if distinct == len(copied):
        raise Failed("the workers' copies of a Generator draw different numbers: the known trap was not seen")
    note(
        f"a numpy Generator held by a data set gives {distinct} distinct numbers to {len(copied)} items,"
        " since each worker has the same copy; seed it in a worker_init_fn"
    )
    mended = loaded(2, "fork", Draws(held=True), worker_init_fn=reseed_held)["numpy"]
    if len(mended.unique()) != len(mended):
        raise Failed("two items got the same random number, though each worker's Generator has its own seed")
    return {"copied": copied, "mended": mended}


def sampler_of(count: int, rank: int) -> torch.utils.data.DistributedSampler[int]:
    """Return the DistributedSampler of one of two ranks, of as many items."""
    items: Any = range(count)
    return torch.utils.data.DistributedSampler(items, num_replicas=2, rank=rank, seed=3)


@check(WITHIN, ACROSS, anywhere=True, order=620)
def distributed_sampler(_: str) -> Results:
    """DistributedSampler's order follows from seed and epoch; without set_epoch it never changes."""
    results: dict[str, Any] = {}
    for rank in range(2):
        sampler = sampler_of(64, rank)
        first, again = list(sampler), list(sampler)
        must_be("an epoch without set_epoch", got=again, expected=first)
        sampler.set_epoch(1)
        second = list(sampler)
        must_differ("DistributedSampler's order in the next epoch, after set_epoch", first, second)
        results.update({f"rank {rank} epoch 0": first, f"rank {rank} epoch 1": second})
    must_be(
        "samples of the two ranks",
        got=sorted(results["rank 0 epoch 1"] + results["rank 1 epoch 1"]),
        expected=list(range(64)),
    )
    return results


# --- training ---------------------------------------------------------------------------------------------
# Training of a small network.

def train(
    device: str, optimizer: str, options: Mapping[str, float], steps: int = 20
) -> dict[str, torch.Tensor]:
    """Return the losses and the last parameters of a small CNN after some steps on 16 images of 12 x 12."""
    nn = torch.nn
    layers = (
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(200, 10),
    )
    model = filled(nn.Sequential(*layers), device)
    images, labels = numbers(16, 1, 12, 12, device=device), indices(16, 10, device=device)
    stepper = getattr(torch.optim, optimizer)(model.parameters(), **options)
    losses = []
    for _ in range(steps):
        stepper.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        stepper.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses), **dict(model.named_parameters())}


@check(WITHIN, ACROSS, devices=BOTH, order=700)
def train_sgd(device: str) -> Results:
    """Twenty steps of training with SGD repeat: losses and parameters."""
    return train(device, "SGD", {"lr": 0.1})


@check(WITHIN, ACROSS, devices=BOTH, order=705)
def train_momentum(device: str) -> Results:
    """Twenty steps of training with momentum repeat: losses and parameters."""
    return train(device, "SGD", {"lr": 0.05, "momentum": 0.9})


@check(WITHIN, ACROSS, devices=BOTH, order=710)
def train_adamw(device: str) -> Results:
    """Twenty steps of training with AdamW repeat: losses and parameters."""
    return train(device, "AdamW", {"lr": 0.01})


# --- settings ---------------------------------------------------------------------------------------------
# The settings that have to be in effect.

@check(SETTING, order=0)
def imports(_: str) -> Results:
    """torch and numpy can be imported."""
    importlib.import_module("numpy")
    importlib.import_module("torch")
    return None


@check(SETTING, order=5)
def setting_hook(_: str) -> Results:
    """The import hook is in effect, which sets in each process what no variable can."""
    if "REPROBUILD_PROFILE" not in os.environ:
        raise NotRun("REPROBUILD_PROFILE is not set: reprobuild did not build this environment")
    if os.environ.get("REPROBUILD_DETERMINISM", "").lower() == "off":
        raise Failed("the import hook is turned off: REPROBUILD_DETERMINISM is off")
    if sys.modules.get("reprobuild_hook"):
        return None
    folder = Path(sysconfig.get_path("purelib"))
    for name in ("reprobuild.pth", "reprobuild_hook.py"):
        if not (folder / name).exists():
            raise Failed(f"the import hook is gone: {name} is not in {folder}")
    raise Failed(f"the import hook is gone: {folder}/reprobuild.pth does not import it")


STARTS = 8
"""How many processes show their variables, to each interpreter: what is drawn at a start is then seen."""

SHOW = "import json, os, sys; print(json.dumps([sys.prefix, dict(os.environ)]))"


@check(SETTING, order=7)
def setting_environment(_: str) -> Results:
    """Each process, started as a user would, sees the variables of the lock, and is of this environment."""
    # Any fixed choice of NCCL's repeats; a run may need another than ours.
    baked: dict[str, str] = locked()["variables"]
    expected = {n: os.environ.get(n, v) if n.startswith("NCCL_") else v for n, v in baked.items()}
    python = shutil.which("python3")
    if python is None:
        raise Failed("there is no python3 on PATH")

    def start(_: int) -> tuple[str, dict[str, str]]:
        # Not with the variables of this process: they are what the first start has made of them.
        env = {**os.environ, **expected}
        done = subprocess.run(
            [python, "-c", SHOW], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise Failed(f"{python} -c … ended with status {done.returncode}: {done.stderr[-500:]}")
        prefix, seen = json.loads(done.stdout)
        return prefix, seen

    with ThreadPoolExecutor(2) as pool:
        started = [(sys.prefix, dict(os.environ)), *pool.map(start, range(STARTS))]
    wrong: dict[str, dict[str, str]] = {}
    for prefix, seen in started:
        if prefix != sys.prefix:
            raise Failed(f"python3 on PATH is that of {prefix}, not of {sys.prefix}")
        for name, value in expected.items():
            if (got := seen.get(name, "not set")) != value:
                wrong.setdefault(name, {"what": name, "expected": value, "got": got})
    if wrong:
        raise Failed(f"not as locked in each process: {', '.join(wrong)}", list(wrong.values()))
    return None


@check(SETTING, order=10, hooked=True)
def setting_seed(_: str) -> Results:
    """The seed of the request reaches torch, NumPy and random at the start of a process."""
    text = os.environ.get("REPROBUILD_SEED")
    if not text:
        raise NotRun("no seed is baked in: REPROBUILD_SEED is not set")
    # The first of the checks that could draw a number, so the states are those of the start.
    must_be("torch.initial_seed()", got=torch.initial_seed(), expected=int(text))
    seeded = random.getstate() == random.Random(int(text)).getstate()  # noqa: S311 -- no secret
    must_be("random is in the state that the seed gives", got=seeded, expected=True)
    states: list[Any] = [np.random.get_state(), np.random.RandomState(int(text)).get_state()]
    state, expected = (each[1] for each in states)
    must_be(
        "numpy.random is in the state that the seed gives", got=bool((state == expected).all()), expected=True
    )
    return None


@check(SETTING, order=100, hooked=True)
def setting_deterministic(_: str) -> Results:
    """Deterministic algorithms are on in torch, and what has none raises rather than warns."""
    on = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    must_be("torch.are_deterministic_algorithms_enabled()", got=on, expected=True)
    must_be("torch.is_deterministic_algorithms_warn_only_enabled()", got=warns, expected=False)
    return None


@check(SETTING, order=105, hooked=True)
def setting_cudnn(_: str) -> Results:
    """cuDNN takes deterministic algorithms, and does not choose them by a race."""
    must_be("torch.backends.cudnn.deterministic", got=torch.backends.cudnn.deterministic, expected=True)
    must_be("torch.backends.cudnn.benchmark", got=torch.backends.cudnn.benchmark, expected=False)
    return None


@check(SETTING, order=102, hooked=True)
def setting_fill(_: str) -> Results:
    """Programs find new memory filled or not, as the request says; the self-test itself fills it."""
    if "fill" not in AT_START:
        raise NotRun("torch 2.1 and older do not fill new memory")
    expected = os.environ.get("REPROBUILD_FILL") == "1"
    must_be("fill_uninitialized_memory at the start", got=AT_START["fill"], expected=expected)
    return None


@check(SETTING, order=110, hooked=True)
def setting_tf32(_: str) -> Results:
    """float32 products keep all their bits: TF32 is off in cuBLAS and cuDNN."""
    must_be("NVIDIA_TF32_OVERRIDE", got=os.environ.get("NVIDIA_TF32_OVERRIDE", "not set"), expected="0")
    must_be("TRITON_F32_DEFAULT", got=os.environ.get("TRITON_F32_DEFAULT", "not set"), expected="ieee")
    matmul = torch.backends.cuda.matmul
    try:
        got = matmul.fp32_precision
    except (AttributeError, AssertionError):  # torch 2.0 asserts that it knows the name
        got = None
    if got is not None:
        # torch 2.9 and later: the hook leaves both sets of names alone, and reading the old ones raises where
        # a program has used the new. cuDNN's is "tf32" by default, which the variable overrules.
        must_be("torch.backends.cuda.matmul.fp32_precision is tf32", got=got == "tf32", expected=False)
        return None
    for what, backend in (("cudnn", torch.backends.cudnn), ("cuda.matmul", matmul)):
        must_be(f"torch.backends.{what}.allow_tf32", got=backend.allow_tf32, expected=False)
    return None


@check(SETTING, devices=BOTH, order=115)
def precision(device: str) -> Results:
    """float32 products and convolutions have the precision of float32, by comparison with float64."""
    # Rounding the factors to TF32's 10 bits gives 3e-4 here, to bfloat16 3e-3; float32 itself at most 1e-6.
    for what, function, shape in (
        ("matmul", torch.matmul, (256, 256)),
        ("conv2d", torch.nn.functional.conv2d, (16, 16, 9, 9)),
    ):
        a, b = (numbers(*shape, salt=salt, dtype="float64") for salt in (1, 2))
        exact = function(a, b)
        got = function(a.float().to(device), b.float().to(device)).cpu().double()
        error = ((got - exact).norm() / exact.norm()).item()
        if error > 3e-5:
            detail = {"what": f"relative error of {what}", "expected": "below 3e-05", "got": f"{error:.3g}"}
            raise Failed(f"{what} in float32 is not precise: TF32 or bfloat16 is in use", [detail])
    return None


@check(SETTING, order=120)
def setting_threads(_: str) -> Results:
    """The number of threads is fixed, and is the one in effect (more than the cores are not given)."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    if not text.isdecimal():
        raise Failed("OMP_NUM_THREADS is not set: results depend on the number of cores")
    for name in ("MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        must_be(name, got=os.environ.get(name, "not set"), expected=text)
    for name in ("OMP_DYNAMIC", "MKL_DYNAMIC"):
        must_be(name, got=os.environ.get(name, "").upper(), expected="FALSE")
    must_be("torch.get_num_threads()", got=torch.get_num_threads(), expected=int(text))
    return None


@check(SETTING, order=125)
def setting_hash_seed(_: str) -> Results:
    """The hash seed of Python is fixed."""
    if not os.environ.get("PYTHONHASHSEED", "").isdecimal():
        raise Failed("PYTHONHASHSEED is not set to a number: the order of sets changes with every process")
    must_be("sys.flags.ignore_environment", got=sys.flags.ignore_environment, expected=0)
    return None


@check(SETTING, order=130)
def setting_cublas_workspace(_: str) -> Results:
    """cuBLAS has a workspace of a fixed size (torch up to 2.9 refuses to run without)."""
    got = os.environ.get("CUBLAS_WORKSPACE_CONFIG", "not set")
    must_be("CUBLAS_WORKSPACE_CONFIG", got=got, expected=":16:8" if got == ":16:8" else ":4096:8")
    return None


@check(SETTING, devices=("cuda",), order=135)
def cublas_refuses(_: str) -> Results:
    """torch refuses a product on the GPU when cuBLAS has no fixed workspace."""
    if version() >= (2, 10):  # pytorch/pytorch#161749
        raise NotRun("torch 2.10 and later run without a fixed workspace; see setting-cublas-workspace")
    code = (
        "import torch; torch.use_deterministic_algorithms(True);"
        "a = torch.ones(64, 64, device='cuda'); print((a @ a).cpu())"
    )
    env = {name: value for name, value in os.environ.items() if name != "CUBLAS_WORKSPACE_CONFIG"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode == 0:
        raise Failed("a product without CUBLAS_WORKSPACE_CONFIG gave a result: the flag is not enforced")
    if "CUBLAS_WORKSPACE_CONFIG" not in done.stderr:
        raise RuntimeError(done.stderr)
    return None


def numpy_kernels() -> list[str]:
    """Return the CPU features by which NumPy chooses kernels here, beyond those that it always needs."""
    name = "numpy._core._multiarray_umath" if hasattr(np, "_core") else "numpy.core._multiarray_umath"
    module = importlib.import_module(name)
    features = module.__cpu_features__
    return [feature for feature in module.__cpu_dispatch__ if features.get(feature)]


@check(SETTING, order=140)
def setting_profile(_: str) -> Results:
    """The variables of the other libraries that change numbers are set as the profile says."""
    expected = {"TORCHINDUCTOR_DETERMINISTIC": "1"}
    for name in ("NCCL_ALGO", "NCCL_PROTO"):  # any fixed choice repeats; a run may need another than ours
        must_be(f"{name} is set", got=bool(os.environ.get(name)), expected=True)
    if os.environ.get("REPROBUILD_PROFILE") == "portable":
        expected["MKL_CBWR"], expected["OPENBLAS_CORETYPE"] = "COMPATIBLE", "Haswell"
        expected["ATEN_CPU_CAPABILITY"], expected["ONEDNN_MAX_CPU_ISA"] = "avx2", "AVX2"
        must_be("NumPy's kernels chosen by CPU", got=numpy_kernels(), expected=[])
        must_be("torch's CPU capability", got=cpu_capability(), expected="AVX2")
    else:
        expected["MKL_CBWR"] = "AUTO"
    for name, value in expected.items():
        must_be(name, got=os.environ.get(name, "not set"), expected=value)
    return None


@check(SETTING, order=145)
def setting_forbidden(_: str) -> Results:
    """No variable is set that changes an algorithm or its numbers."""
    found = [name for name in FORBIDDEN if name in os.environ]
    if found:
        lines = [{"what": name, "expected": "not set", "got": os.environ[name]} for name in found]
        raise Failed(f"set: {', '.join(found)}", lines)
    return None


@check(SETTING, devices=BOTH, order=150, hooked=True)
def setting_kept(device: str) -> Results:
    """A convolution and a step of training leave the settings as they were, and as they have to be."""

    def state() -> tuple[object, ...]:
        cudnn = torch.backends.cudnn
        flags = torch.are_deterministic_algorithms_enabled(), cudnn.deterministic, cudnn.benchmark
        return *flags, torch.get_num_threads(), torch.get_float32_matmul_precision()

    before = state()
    conv2d(device)
    train(device, "SGD", {"lr": 0.1}, steps=1)
    must_be("flag, cuDNN's flags, threads, precision", got=state(), expected=before)
    # A convolution before this one may have changed them already.
    wanted = {"deterministic algorithms": True, "cudnn.deterministic": True, "cudnn.benchmark": False}
    for (what, expected), got in zip(wanted.items(), before):
        must_be(f"{what} after a convolution", got=got, expected=expected)
    return None


# --- installed --------------------------------------------------------------------------------------------
# What is installed and loaded: versions, files, CUDA's libraries.

@check(SETTING, order=155)
def setting_versions(_: str) -> Results:
    """Installed packages have the versions of the image's constraints."""
    constraints = image_file("constraints.txt")
    if not constraints.exists():
        raise NotRun(f"{constraints} does not exist")
    metadata = importlib.import_module("importlib.metadata")
    lines = []
    for name, wanted in re.findall(
        r"^([\w.-]+) *== *([^\s;#]+)", constraints.read_text("utf-8"), re.MULTILINE
    ):
        try:
            got = metadata.version(name)
        except metadata.PackageNotFoundError:
            got = "not installed"
        # "2.4.1.*" is a package of conda's, whose builds may call themselves 2.4.1.post303 to pip, and whose
        # names are not all known to pip.
        conda = wanted.endswith(".*")
        if conda and (got == "not installed" or re.match(re.escape(wanted[:-2]) + "(?![0-9])", got)):
            continue
        if got != wanted:
            lines.append({"what": name, "expected": wanted, "got": got})
    if lines:
        raise Failed(f"other versions: {', '.join(line['what'] for line in lines)}", lines)
    return None


def changed_files(wanted: Callable[[str], bool]) -> Results:
    """Compare files with the manifest of the image, those whose path is wanted; raises `Failed`, `NotRun`."""
    manifest = image_file("manifest.tsv")
    if not manifest.exists():
        raise NotRun(f"{manifest} does not exist")
    lines, count = [], 0
    for line in manifest.read_text("utf-8", "surrogateescape").splitlines():
        kind, _, content, path = line.split("\t")
        if kind != "file" or not wanted(path):
            continue
        count += 1
        try:
            with open(path, "rb") as file:  # noqa: PTH123 -- faster at 10,000 files
                digest = hashlib.sha256()
                while chunk := file.read(1 << 18):  # hashlib.file_digest is of Python 3.11
                    digest.update(chunk)
                got = digest.hexdigest()
        except OSError as error:
            got = error.strerror or "cannot be read"
        if got != content:
            lines.append({"what": path, "expected": content, "got": got})
    if lines:
        raise Failed(f"{len(lines)} of {count} files are not those that were locked", lines[:20])
    note(f"{count} files")
    return None


@check(SETTING, order=160)
def setting_files(_: str) -> Results:
    """The Python files of torch and NumPy are those of the image's manifest."""
    inside = re.compile(r".*/site-packages/(torch|numpy)/.*\.pyc?")
    return changed_files(lambda path: inside.fullmatch(path) is not None)


@check(SETTING, part="full", order=165)
def setting_files_all(_: str) -> Results:
    """All files of the environment are those of the image's manifest."""
    return changed_files(lambda path: path.startswith(sys.prefix + "/"))


def loaded_files() -> list[str]:
    """Return the files that this process has mapped, by path; one that is deleted since keeps its path."""
    lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    return sorted({line.split(None, 5)[5].partition(" (deleted)")[0] for line in lines if "/" in line})


# This late because libraries are loaded when they are first used.
@check(SETTING, order=950)
def one_cuda_copy(_: str) -> Results:
    """Each CUDA library that the process has loaded is there once, and is the locked packages' own."""
    copies: dict[str, list[str]] = {}
    for path in loaded_files():
        match = CUDA_LIBRARY.fullmatch(Path(path).name)
        if match:
            copies.setdefault(match[1], []).append(path)
    if not copies:
        raise NotRun("this build of torch loads no CUDA library")
    folders: dict[str, list[str]] = {}
    for path in sorted(path for found in copies.values() for path in found):
        folders.setdefault(str(Path(path).parent), []).append(Path(path).name)
    for folder, names in folders.items():
        note(f"from {folder}: {', '.join(names)}")
    twice = {name: found for name, found in copies.items() if len(found) > 1}
    if twice:
        detail = [
            {"what": name, "expected": "one copy", "got": " ".join(found)} for name, found in twice.items()
        ]
        raise Failed(f"loaded twice: {', '.join(twice)}", detail)
    strays = {name: found[0] for name, found in copies.items() if not found[0].startswith(sys.prefix + "/")}
    # An image that reprobuild did not build may have all of them from one other place, such as /usr/local.
    if strays and (len(strays) < len(copies) or image_file("manifest.tsv").exists()):
        detail = [
            {"what": name, "expected": f"from {sys.prefix}", "got": path} for name, path in strays.items()
        ]
        raise Failed(f"loaded from outside {sys.prefix}: {', '.join(strays.values())}", detail)
    cudnn = getattr(torch._C, "_cudnn", None)
    if cudnn is not None:
        # torch's own rule (torch/backends/cudnn/__init__.py): a wheel may ask for a later minor version than
        # the one that it is compiled with, such as 9.10 with 9.8.
        compiled, running = cudnn.getCompileVersion(), cudnn.getRuntimeVersion()
        fits = running[0] == compiled[0] and running >= compiled
        must_be(f"cuDNN {running} fits torch, which is compiled with {compiled}", got=fits, expected=True)
    return None


# --- subnormals -------------------------------------------------------------------------------------------
# Subnormal numbers are kept.
#
# A library that is built with -ffast-math turns them into zero for the whole process when it is loaded
# (llvm/llvm-project#57589).

SMALLEST = 2.2250738585072014e-308  # of the normal float64 numbers
IMPORTER = f"""
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        said = "kept" if float("{SMALLEST}") / 2 > 0 else "zero"
    except BaseException as error:
        said = "not imported: " + type(error).__name__
    print(name, said, sep="\\t", flush=True)
    if said == "zero":
        break
"""


def compiled_packages() -> list[str]:
    """Return the importable names of installed packages with compiled code, but for torch and NumPy."""
    found = set()
    metadata = importlib.import_module("importlib.metadata")
    for distribution in metadata.distributions():
        for file in distribution.files or ():
            top = file.parts[0].partition(".")[0]
            if ".so" in file.suffixes and top.isidentifier() and file.parts[0] in (top, file.name):
                found.add(top)
    # NVIDIA's packages hold libraries alone, which torch loads.
    return sorted(found - {"torch", "numpy", "nvidia"})


def import_each(names: list[str]) -> dict[str, str]:
    """Import packages one after the other in one process; return what became of a subnormal, by package."""
    command = [sys.executable, "-c", IMPORTER, *names]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, check=False
        )
        text, ending = done.stdout, f"the import ended the process with status {done.returncode}"
    except subprocess.TimeoutExpired as error:
        said: Any = error.stdout
        text, ending = (said or b"").decode(), "the import took more than 60 s"
    lines = [line.split("\t") for line in text.splitlines() if line.count("\t") == 1]
    found = {name: said for name, said in lines if name in names}
    if len(found) < len(names) and "zero" not in found.values():
        found[next(name for name in names if name not in found)] = f"not imported: {ending}"
    return found


def flushed(where: str, what: str) -> Failed:
    """Return the failure to raise where half of the smallest normal number is zero."""
    line = {"what": f"{SMALLEST} / 2 {where}", "expected": "1.1125369292536007e-308", "got": "0.0"}
    return Failed(what, [line])


@check(SETTING, order=900)
def subnormals(_: str) -> Results:
    """Subnormal numbers are not turned into zero, also after importing each package with compiled code."""
    halves = {
        "Python": float(str(SMALLEST)) / 2,
        "NumPy": float((np.array([SMALLEST]) / 2)[0]),
        "torch": float((torch.tensor([SMALLEST], dtype=torch.float64) / 2)[0]),
    }
    for where, value in halves.items():
        if value == 0:
            raise flushed(f"in {where}", "this process turns subnormal numbers into zero")
    names = compiled_packages()
    while names:
        found = import_each(names)
        for name, said in found.items():
            if said == "zero":
                reason = f"once {name} is imported, the process turns subnormal numbers into zero"
                raise flushed(f"after import {name}", reason)
            if said != "kept":
                note(f"{name}: {said}")
        names = [name for name in names if name not in found]
    return None


# --- ranks ------------------------------------------------------------------------------------------------
# Training on two ranks.

SECONDS = 90  # for the ranks' answers


def rank_work(sending: Any, rank: int, backend: str, place: str, *, history: bool) -> None:
    """Send what one of two ranks has after 5 steps: its order of samples, losses, gradients, parameters.

    ``history``: memory has been allocated and freed on its device before, as after a while of another work.
    """
    distributed, nn = torch.distributed, torch.nn
    # Without it gloo resolves the host's name, which a container without a network cannot.
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    device = "cpu" if backend == "gloo" else f"cuda:{rank}"
    if device != "cpu":
        # What NCCL and the caches of memory take for this rank's own
        # (https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group).
        torch.cuda.set_device(rank)
    if history:
        held = [torch.empty(1000 * size + rank, device=device) for size in (1, 777, 3, 4099)]
        del held[::2]
    distributed.init_process_group(
        backend,
        init_method=f"file://{place}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=60),
    )
    layers = nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 10)
    model = filled(nn.Sequential(*layers), device)
    parallel = nn.parallel.DistributedDataParallel(model)
    images, labels = numbers(40, 48, device=device), indices(40, 10, device=device)
    order = torch.tensor(list(sampler_of(40, rank)))
    stepper = torch.optim.AdamW(parallel.parameters(), lr=0.01)
    losses = []
    for mine in order.to(device).split(4):
        stepper.zero_grad()
        loss = nn.functional.cross_entropy(parallel(images[mine]), labels[mine])
        loss.backward()
        stepper.step()
        losses.append(loss.detach())
    found: dict[str, Any] = {"order": order, "losses": torch.stack(losses)}
    for name, parameter in model.named_parameters():
        found.update({f"parameter {name}": parameter, f"gradient {name}": parameter.grad})
    # As arrays, which go through a pipe without shared memory.
    sending.send({name: value.detach().cpu().numpy() for name, value in found.items()})
    # Until the parent ends it: when a process group is taken apart, its threads and the interpreter's
    # lock can wait for each other (seen with gloo in torch 2.13).
    signal.pause()


def rank_main(sending: Any, rank: int, backend: str, place: str, history: bool) -> None:  # noqa: FBT001
    """Run one rank; send its results, or the traceback of what went wrong."""
    try:
        rank_work(sending, rank, backend, place, history=history)
    except Exception:  # noqa: BLE001 -- the parent raises it
        sending.send(traceback.format_exc())


def two_ranks(backend: str, start: str, *, history: bool = False) -> dict[str, Any]:
    """Train on two ranks, started by "fork" or "spawn"; their gradients and parameters must agree."""
    context: Any = multiprocessing.get_context(start)
    if start == "fork":
        # What DistributedDataParallel and the optimizer import, once here rather than once in each rank.
        importlib.import_module("torch._dynamo")
    processes, ends = [], []
    answers: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(2):
            receiving, sending = context.Pipe(duplex=False)
            ends.append(receiving)
            arguments = (sending, rank, backend, f"{folder}/rendezvous", history)
            processes.append(context.Process(target=rank_main, args=arguments, daemon=True))
        try:
            for process in processes:
                process.start()
            limit = time.monotonic() + SECONDS
            for rank, (end, process) in enumerate(zip(ends, processes)):
                multiprocessing.connection.wait([end, process.sentinel], max(0, limit - time.monotonic()))
                answers.append(answer_of(rank, end, process))
        finally:
            for process in processes:
                if process.pid is not None:
                    process.kill()
                    process.join()
    first, second = answers
    pairs = [difference(name, first[name], second[name]) for name in first if name[0] in "pg"]
    if any(pairs):
        raise Failed("two ranks differ", [pair for pair in pairs if pair])
    if set(first["order"]) & set(second["order"]):
        raise Failed("two ranks got the same samples")
    return {**first, "order of rank 1": second["order"], "losses of rank 1": second["losses"]}


def answer_of(rank: int, end: Any, process: Any) -> dict[str, Any]:
    """Return what a rank has sent. Raises RuntimeError with what became of it instead."""
    answer = None
    with contextlib.suppress(EOFError):  # its end of the pipe is closed when it has died
        answer = end.recv() if end.poll() else None
    if isinstance(answer, dict):
        return answer
    if answer is None:
        process.join(1)
        answer = f"no answer within {SECONDS} s"
        if process.exitcode is not None:
            how = f"with status {process.exitcode}"
            if process.exitcode < 0:
                how = f"by {signal.Signals(-process.exitcode).name}"
            answer = f"it ended {how} before it had answered"
    raise RuntimeError(f"rank {rank}: {answer}")


# This early because its two processes are forked (an import of torch each would take seconds), which is safe
# only while torch has not started threads and nobody has looked for a GPU: after cuInit a child cannot use
# CUDA, and an optimizer asks whether a CUDA graph is being captured (`child` looks for one after this check).
@check(ACROSS, order=20)
def ranks_gloo(_: str) -> Results:
    """Training on two ranks with gloo repeats: order, losses, gradients and parameters, equal on both."""
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        raise NotRun("this build of torch has no gloo")
    with contextlib.suppress(OSError):
        if not int(Path("/sys/class/net/lo/flags").read_text("ascii"), 16) & 1:
            raise NotRun("the loopback interface is down here, and gloo needs it")
    return two_ranks("gloo", "fork")


@check(ACROSS, devices=("cuda",), order=30)
def ranks_nccl(_: str) -> Results:
    """Training on two GPUs with NCCL repeats in fresh launches: order, losses, gradients and parameters."""
    if torch.cuda.device_count() < 2:
        raise NotRun("there is one GPU here; NCCL is tested with two")
    first = two_ranks("nccl", "spawn")
    # NVLS's order of sums once depended on what had been allocated before (NVIDIA/nccl#2360).
    again = two_ranks("nccl", "spawn", history=True)
    lines = [difference(name, value, again[name]) for name, value in first.items()]
    if any(lines):
        reason = "a fresh launch, with memory allocated before, differs from the first"
        raise Failed(reason, [line for line in lines if line])
    REPEATED.made = 2
    return first


# --- seeds ------------------------------------------------------------------------------------------------
# Random numbers follow from their seeds.

def torch_draws(device: str, generator: torch.Generator | None = None) -> dict[str, torch.Tensor]:
    """Return a thousand numbers of each kind from torch's generator of the device, or from another."""
    weights = numbers(1000, device=device).abs()
    return {
        "rand": torch.rand(1000, device=device, generator=generator),
        "randn": torch.randn(1000, device=device, generator=generator),
        "randint": torch.randint(0, 1000, (1000,), device=device, generator=generator),
        "randperm": torch.randperm(1000, device=device, generator=generator),
        "bernoulli": torch.bernoulli(weights, generator=generator),
        "multinomial": torch.multinomial(weights, 100, generator=generator),
    }


def check_seeding(
    name: str,
    seed: Callable[[int], object],
    unseed: Callable[[], object],
    draw: Callable[[], Mapping[str, object]],
) -> dict[str, object]:
    """Return what ``draw`` gives after one seed; another seed and no seed must each give something else."""

    def drawn(start: Callable[..., object], *arguments: int) -> dict[str, object]:
        start(*arguments)
        return dict(draw())

    first = drawn(seed, 20240915)
    for what, value in drawn(seed, 20240916).items():
        must_differ(f"{name}: {what} after another seed", first[what], value)
    unseeded = drawn(unseed)
    for what, value in drawn(unseed).items():
        must_differ(f"{name}: {what} in two runs without a seed", unseeded[what], value)
    return first


@check(WITHIN, ACROSS, devices=BOTH, order=200)
def torch_seed(device: str) -> Results:
    """torch's numbers follow from manual_seed, also a Generator's own."""
    places = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if device == "cuda" else [device]

    def draw() -> dict[str, object]:
        return {f"{name} on {at}": value for at in places for name, value in torch_draws(at).items()}

    results = check_seeding("torch", torch.manual_seed, torch.seed, draw)
    own = torch.Generator(device)
    draws = check_seeding("torch.Generator", own.manual_seed, own.seed, lambda: torch_draws(device, own))
    torch.manual_seed(20240915)
    dropout = torch.nn.functional.dropout(numbers(1000, device=device))
    return {**results, **{f"Generator {name}": value for name, value in draws.items()}, "dropout": dropout}


@check(WITHIN, ACROSS, devices=BOTH, order=201)
def torch_seed_large(device: str) -> Results:
    """Draws of 120,000 numbers follow from manual_seed; on a GPU their bits are those of its model."""
    # Above some 40,000 elements two models of GPU, each right in itself, gave other numbers
    # (pytorch/pytorch#194676), so the smaller draws say nothing of these.
    count = 120_000

    def draw() -> dict[str, object]:
        empty = torch.empty(count, device=device)
        return {
            "rand": torch.rand(count, device=device),
            "randn": torch.randn(count, device=device),
            "randint": torch.randint(0, 1000, (count,), device=device),
            "randperm": torch.randperm(count, device=device),
            "bernoulli": torch.bernoulli(torch.full_like(empty, 0.5)),
            "exponential": empty.clone().exponential_(),
            "normal": empty.clone().normal_(1, 2),
        }

    return check_seeding("torch", torch.manual_seed, torch.seed, draw)


@check(WITHIN, ACROSS, devices=("cuda",), order=202)
def cuda_graph_seed(device: str) -> Results:
    """The replay of a CUDA graph draws from the seed that was set since, not from that of its capture."""
    drawn = torch.zeros(1000, device=device)
    torch.manual_seed(1)
    graph = graph_of(drawn.uniform_)

    def replay(seed: int | None) -> torch.Tensor:
        if seed is not None:
            torch.manual_seed(seed)
        graph.replay()
        torch.cuda.synchronize()
        return drawn.clone()

    # pytorch/pytorch#84967: it once kept the seed of the capture.
    results = {"first": replay(7), "next": replay(None), "another seed": replay(8), "again": replay(7)}
    must_differ("a second replay", results["first"], results["next"])
    must_differ("a replay after another seed", results["first"], results["another seed"])
    lines = [difference("a replay after the first seed", results["first"], results["again"])]
    if lines[0]:
        raise Failed("a replay after the same seed draws other numbers", [line for line in lines if line])
    return results


@check(WITHIN, ACROSS, anywhere=True, order=205)
def python_seed(_: str) -> Results:
    """Python's random numbers follow from random.seed."""

    def draw() -> dict[str, object]:
        order = random.sample(range(100), 100)
        return {"random": [random.random() for _ in range(100)], "sample": order, "gauss": random.gauss()}  # noqa: S311

    return check_seeding("random", random.seed, random.seed, draw)


@check(WITHIN, ACROSS, order=210)
def numpy_seed(_: str) -> Results:
    """NumPy's numbers follow from numpy.random.seed and default_rng."""

    def draw_global() -> dict[str, object]:
        return {"rand": np.random.rand(100), "normal": np.random.standard_normal(100)}

    results = check_seeding("numpy.random", np.random.seed, np.random.seed, draw_global)
    held = {"rng": np.random.default_rng(0)}

    def draw_own() -> dict[str, object]:
        rng = held["rng"]
        return {"random": rng.random(100), "normal": rng.standard_normal(100), "order": rng.permutation(100)}

    def start(*seed: int) -> None:
        held["rng"] = np.random.default_rng(*seed)

    own = check_seeding("default_rng", start, start, draw_own)
    return {**results, **{f"default_rng {name}": value for name, value in own.items()}}


@check(ACROSS, anywhere=True, order=215)
def hash_seed(_: str) -> Results:
    """Two interpreters give a set of words one order."""
    code = "print(list({str(i) for i in range(50)}))"
    changing = {**os.environ, "PYTHONHASHSEED": "random"}
    command = [sys.executable, "-S", "-c", code]
    orders = [subprocess.check_output(command, env=changing, timeout=60) for _ in range(2)]
    must_differ("a set's order under PYTHONHASHSEED=random", *orders)
    return {"set": list({f"word {i}" for i in range(50)}), "hash": hash("reprobuild")}


# --- kernels ----------------------------------------------------------------------------------------------
# What a GPU does in ways of its own: kernels chosen by shape and type, streams, graphs, mixed precision.

CUDA = ("cuda",)


def same(reason: str, first: Mapping[str, object], second: Mapping[str, object]) -> None:
    """Raise `Failed` where results by name differ."""
    lines = [difference(name, value, second[name]) for name, value in first.items()]
    if any(lines):
        raise Failed(reason, [line for line in lines if line])


@check(WITHIN, ACROSS, devices=CUDA, order=326)
def split_k(device: str) -> Results:
    """Products with a long inner side, which cuBLAS splits up, repeat in each precision."""
    matmul = torch.backends.cuda.matmul
    names = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    results: dict[str, Any] = {name: repr(getattr(matmul, name, None)) for name in names}
    note(", ".join(f"{name}: {value}" for name, value in results.items()))

    def products(inner: int) -> dict[str, torch.Tensor]:
        a, b = wide[:, :inner], tall[:inner]
        found = {}
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            found[f"{dtype} product"] = a.to(dtype) @ b.to(dtype)
            found[f"{dtype} added"] = torch.addmm(b[:1].to(dtype), a.to(dtype), b.to(dtype))
        return found

    wide, tall = numbers(64, 65_536, device=device), numbers(65_536, 64, salt=1, device=device)
    return {**results, **products(65_536), **steady(lambda: products(4096))}


@check(WITHIN, ACROSS, devices=CUDA, order=327)
def fp8(device: str) -> Results:
    """A product of float8 matrices repeats."""
    if not hasattr(torch, "_scaled_mm") or not hasattr(torch, "float8_e4m3fn"):
        raise NotRun("this torch has no product of float8 matrices")
    if torch.cuda.get_device_capability() < (8, 9):
        raise NotRun("this GPU has no float8: it came with compute capability 8.9")
    a, b = (numbers(256, 256, salt=salt, device=device).to(torch.float8_e4m3fn) for salt in (1, 2))
    one = torch.ones((), device=device)
    return steady(lambda: {"product": torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)})


@check(WITHIN, ACROSS, devices=CUDA, order=386)
def attention_long(device: str) -> Results:
    """Causal attention over 2,048 places repeats, forward and backward, each backend that there is."""
    heads = [numbers(1, 2, 2048, 64, salt=salt, dtype="bfloat16", device=device) for salt in (1, 2, 3)]

    def attended(*heads: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)

    results: dict[str, Any] = {"chosen": -1}
    with contextlib.suppress(AttributeError):
        results["chosen"] = torch._fused_sdp_choice(*heads, is_causal=True)
        note(f"torch chooses {torch.nn.attention.SDPBackend(results['chosen']).name}")
    for backend in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        only = attention_by(backend)
        if only is None:
            continue
        try:
            with only, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = with_gradients(attended, *heads)
        except RuntimeError as error:
            if not any(words in str(error) for words in NO_KERNEL):
                raise
            note(f"{backend}: not available here")
            continue
        results.update({f"{backend} {name}": value for name, value in found.items()})
    return results


@check(WITHIN, ACROSS, devices=CUDA, order=410)
def two_streams(device: str) -> Results:
    """Work on two streams repeats, also in memory that the other stream has used before."""
    a = numbers(512, 512, device=device)
    streams = [torch.cuda.Stream() for _ in range(2)]

    def work() -> dict[str, torch.Tensor]:
        found = {}
        for turn in range(4):
            for number, stream in enumerate(streams):
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    held = a @ a  # freed at the end of the turn, for the next one to take
                    found[f"turn {turn} stream {number}"] = (held @ a).relu()
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)
        return found

    return steady(work)


@check(WITHIN, ACROSS, devices=CUDA, order=715)
def captured_training(device: str) -> Results:
    """A training step that is captured in a CUDA graph repeats when it is replayed."""
    layers = torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.LayerNorm(96), torch.nn.Linear(96, 10)
    model = filled(torch.nn.Sequential(*layers), device)
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    stepper = torch.optim.SGD(model.parameters(), lr=0.1)
    x, loss = numbers(32, 64, device=device), torch.zeros((), device=device)

    def step() -> None:
        stepper.zero_grad(set_to_none=False)
        value = model(x).square().mean()
        value.backward()
        stepper.step()
        loss.copy_(value.detach())

    graph = graph_of(step, calls=3)

    def replayed() -> dict[str, torch.Tensor]:
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(start[name])
        for _ in range(5):
            graph.replay()
        torch.cuda.synchronize()
        return {
            "loss": loss.clone(),
            **{name: value.detach().clone() for name, value in model.named_parameters()},
        }

    return steady(replayed)


@check(WITHIN, ACROSS, devices=CUDA, order=720)
def mixed_precision(device: str) -> Results:
    """Training in float16 with a gradient scaler repeats, with AdamW in its fused and foreach forms."""
    scaler_of = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    results: dict[str, torch.Tensor] = {}
    for form in ("fused", "foreach"):
        layers = torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.LayerNorm(96), torch.nn.Linear(96, 10)
        model = filled(torch.nn.Sequential(*layers), device)
        options: dict[str, Any] = {form: True}
        stepper, scaler = torch.optim.AdamW(model.parameters(), lr=0.01, **options), scaler_of()
        x, labels, losses = numbers(32, 64, device=device), indices(32, 10, device=device), []
        for _ in range(10):
            stepper.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.cross_entropy(model(x), labels)
            scaler.scale(loss).backward()
            scaler.step(stepper)
            scaler.update()
            losses.append(loss.detach())
        results[f"{form} losses"], results[f"{form} scale"] = (
            torch.stack(losses),
            torch.tensor(scaler.get_scale()),
        )
        results.update({f"{form} {name}": value.detach() for name, value in model.named_parameters()})
    return results


@check(WITHIN, ACROSS, devices=BOTH, order=203)
def generator_state(device: str) -> Results:
    """A generator whose state is saved and set again goes on with the same numbers, on each device."""
    places = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if device == "cuda" else [device]
    results: dict[str, torch.Tensor] = {}
    for place in places:
        own = torch.Generator(place).manual_seed(3)

        def draw(place: str = place, own: torch.Generator = own) -> torch.Tensor:
            return torch.randn(1000, device=place, generator=own)

        draw()
        state = own.get_state()
        results[f"{place} next"], results[f"{place} then"] = draw(), draw()
        other = torch.Generator(place)
        other.set_state(state)
        same(
            f"a generator on {place} goes on with other numbers after its state was set again",
            {"next": results[f"{place} next"], "then": results[f"{place} then"]},
            {"next": draw(own=other), "then": draw(own=other)},
        )
        if place != "cpu" and hasattr(own, "get_offset"):
            must_be(f"the offset on {place}", got=other.get_offset(), expected=own.get_offset())
    return results


@check(ACROSS, devices=CUDA, order=362)
def lstm_dropout(device: str) -> Results:
    """An LSTM with dropout repeats in two processes; notes say whether it does within one, a known trap."""
    # cuDNN keeps the state of its dropout from call to call (pytorch/pytorch#90168).
    model, x = (
        filled(torch.nn.LSTM(32, 48, num_layers=2, dropout=0.3), device),
        numbers(24, 8, 32, device=device),
    )

    def run() -> dict[str, torch.Tensor]:
        torch.manual_seed(3)
        return module_with_gradients(model, x)

    first = run()
    again = run()
    lines = [difference(name, value, again[name]) for name, value in first.items()]
    note("a second call after the same seed " + ("differs" if any(lines) else "repeats"))
    return first


@check(SETTING, devices=CUDA, order=905)
def subnormals_cuda(device: str) -> Results:
    """Kernels keep subnormal numbers."""
    for dtype, smallest in ((torch.float32, 2.0**-126), (torch.float64, 2.0**-1022)):
        value = torch.tensor([smallest], dtype=dtype, device=device)
        small = value / 2
        for name, got in (("/ 2", small), ("* 1", small * 1), ("+ 0", small + 0), ("sqrt", small.sqrt())):
            if got.item() == 0:
                line = {"what": f"{dtype} {smallest} / 2, {name}", "expected": "not zero", "got": "0.0"}
                raise Failed(f"a kernel turns subnormal numbers of {dtype} into zero", [line])
    return None


@check(CONTROL, devices=CUDA, part="full", order=801)
def cudnn_benchmark(device: str) -> Results:
    """This test can see the bits change when cuDNN chooses its algorithms by a race of clocks."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    for channels in (8, 24, 64):
        for side in (24, 57, 96):
            model = filled(torch.nn.Conv2d(channels, 2 * channels, 3, padding=1), device)
            x = numbers(8, channels, side, side, device=device)
            plain = module_with_gradients(model, x)
            try:
                cudnn.benchmark, cudnn.deterministic = True, False
                raced = module_with_gradients(model, x)
            finally:
                cudnn.benchmark, cudnn.deterministic = before
            if any(difference(name, value, raced[name]) for name, value in plain.items()):
                note(f"with cudnn.benchmark, {channels} channels of {side} x {side} have other bits")
                return None
    raise Inconclusive("no convolution had other bits with cudnn.benchmark")


BUSY = """
import sys, torch
a = torch.ones(2048, 2048, device="cuda")
for turn in range(10 ** 9):
    a = (a @ a).clamp_(-1, 1)
    if turn == 3:
        torch.cuda.synchronize()
        print("busy", flush=True)
"""


@contextlib.contextmanager
def busy_gpu() -> Iterator[None]:
    """Let another process load the GPU meanwhile."""
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if line != "busy\n":
                raise RuntimeError("the process that loads the GPU ended")
            yield
        finally:
            process.kill()


@check(ACROSS, devices=CUDA, part="full", order=725)
def under_load(device: str) -> Results:
    """A training and products give the same bits while another process loads the GPU."""
    a, b = (numbers(512, 2048, salt=salt, device=device) for salt in (1, 2))

    def work() -> dict[str, torch.Tensor]:
        found = train(device, "SGD", {"lr": 0.1}, steps=5)
        return {"product": a @ b.T, **{name: value.detach() for name, value in found.items()}}

    alone = work()
    with busy_gpu():
        for _ in range(5):
            same("results change while another process loads the GPU", alone, work())
    return alone


# --- functions --------------------------------------------------------------------------------------------
# Public functions of torch, NumPy and random that no other check calls.

ACTIVATIONS = (
    *("celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu"),
    *("log_softmax", "logsigmoid", "mish", "normalize", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu"),
    *("softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink"),
)
"""Of torch.nn.functional, of one tensor and some of them of its last axis."""
DROPOUTS = ("alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")
PAIRS = (
    *("binary_cross_entropy_with_logits", "cosine_similarity", "huber_loss", "kl_div", "l1_loss", "mse_loss"),
    *("pairwise_distance", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss"),
    "multilabel_soft_margin_loss",
)
"""Of two tensors of one shape."""
INITIALIZERS = (
    *(
        "dirac_",
        "eye_",
        "kaiming_normal_",
        "kaiming_uniform_",
        "normal_",
        "ones_",
        "orthogonal_",
        "trunc_normal_",
    ),
    *("uniform_", "xavier_normal_", "xavier_uniform_", "zeros_"),
)
NUMPY_DRAWS = (
    *(
        "beta",
        "binomial",
        "choice",
        "exponential",
        "gamma",
        "lognormal",
        "multinomial",
        "normal",
        "permutation",
    ),
    *("poisson", "randint", "random_sample", "standard_normal", "uniform"),
)
ALONE = ("softmax", "log_softmax", "softmin")


def functional() -> dict[str, Callable[[], object]]:
    """Return calls of torch.nn.functional by the function's name."""
    f = torch.nn.functional

    def x(*shape: int, salt: int = 0) -> torch.Tensor:
        return numbers(*shape, salt=salt)

    def grads(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return with_gradients(function, *inputs)

    a, b, line, image, cube = x(16, 12), x(16, 12, salt=1), x(2, 4, 32), x(2, 4, 12, 12), x(2, 4, 8, 8, 8)
    ones, classes, sign = x(16, 12, salt=2).abs(), indices(16, 12, salt=4), x(16, salt=5).sign()
    table: dict[str, Callable[[], object]] = {}

    def one(name: str) -> Callable[[], object]:
        more: dict[str, Any] = {"dim": -1} if name in ALONE else {"training": True} if name == "rrelu" else {}
        return lambda: grads(lambda t: getattr(f, name)(t, **more), a)

    def dropped(name: str) -> Callable[[], object]:
        shape = {"1": line, "2": image, "3": cube}.get(name[7:8], image)
        return lambda: getattr(f, name)(shape, training=True)

    def paired(name: str) -> Callable[[], object]:
        more = {"reduction": "batchmean"} if name == "kl_div" else {}
        return lambda: grads(lambda t: getattr(f, name)(t, b, **more), a)

    def pooled(name: str, values: torch.Tensor, options: Mapping[str, Any]) -> Callable[[], object]:
        return lambda: grads(lambda t: getattr(f, name)(t, **options), values)

    table.update({name: one(name) for name in ACTIVATIONS})
    table.update({name: dropped(name) for name in DROPOUTS})
    table.update({name: paired(name) for name in PAIRS})
    for size, values in ((1, line), (2, image), (3, cube)):
        for name, options in (
            ("avg_pool", {"kernel_size": 2}),
            ("max_pool", {"kernel_size": 2}),
            ("lp_pool", {"norm_type": 2, "kernel_size": 2}),
            ("adaptive_avg_pool", {"output_size": 3}),
            ("adaptive_max_pool", {"output_size": 3}),
        ):
            table[f"{name}{size}d"] = pooled(f"{name}{size}d", values, options)
    table.update(
        affine_grid=lambda: f.affine_grid(x(2, 2, 3), [2, 3, 8, 8], align_corners=False),
        batch_norm=lambda: grads(lambda t: f.batch_norm(t, None, None, training=True), image),
        bilinear=lambda: grads(f.bilinear, x(5, 6), x(5, 7, salt=1), x(4, 6, 7, salt=2)),
        binary_cross_entropy=lambda: f.binary_cross_entropy(ones, b.abs()),
        channel_shuffle=lambda: f.channel_shuffle(image, 2),
        conv_tbc=lambda: f.conv_tbc(x(9, 2, 4), x(3, 4, 5), x(5)),
        conv_transpose1d=lambda: grads(f.conv_transpose1d, line, x(4, 3, 3)),
        conv_transpose3d=lambda: grads(f.conv_transpose3d, cube, x(4, 3, 3, 3, 3)),
        cosine_embedding_loss=lambda: f.cosine_embedding_loss(a, b, sign),
        cross_entropy=lambda: grads(lambda t: f.cross_entropy(t, classes, label_smoothing=0.1), a),
        ctc_loss=lambda: f.ctc_loss(
            x(20, 2, 5).log_softmax(2), 1 + indices(12, 4).view(2, 6), (20, 20), (6, 6)
        ),
        embedding_bag=lambda: grads(lambda w: f.embedding_bag(indices(40, 30).view(8, 5), w), x(30, 6)),
        fold=lambda: grads(lambda t: f.fold(t, (6, 6), (3, 3)), x(2, 18, 16)),
        fractional_max_pool2d=lambda: f.fractional_max_pool2d(image, 3, output_size=5),
        fractional_max_pool3d=lambda: f.fractional_max_pool3d(cube, 2, output_size=5),
        gaussian_nll_loss=lambda: f.gaussian_nll_loss(a, b, ones + 0.1),
        grid_sample=lambda: grads(
            lambda t, g: f.grid_sample(t, g, align_corners=False), image, x(2, 5, 5, 2)
        ),
        group_norm=lambda: grads(lambda t: f.group_norm(t, 2), image),
        gumbel_softmax=lambda: f.gumbel_softmax(a, tau=0.7),
        hinge_embedding_loss=lambda: f.hinge_embedding_loss(a, b.sign()),
        instance_norm=lambda: grads(f.instance_norm, image),
        interpolate=lambda: [
            grads(lambda t, m=mode: f.interpolate(t, scale_factor=1.7, mode=m), image)
            for mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact")
        ],
        linear=lambda: grads(f.linear, a, x(9, 12), x(9)),
        local_response_norm=lambda: grads(lambda t: f.local_response_norm(t, 2), image),
        margin_ranking_loss=lambda: f.margin_ranking_loss(a[:, 0], b[:, 0], sign),
        multi_margin_loss=lambda: f.multi_margin_loss(a, classes),
        multilabel_margin_loss=lambda: f.multilabel_margin_loss(a, indices(192, 12, salt=6).view(16, 12)),
        multi_head_attention_forward=lambda: module_with_gradients(
            filled(torch.nn.MultiheadAttention(12, 3), "cpu"), *(x(5, 2, 12, salt=salt) for salt in range(3))
        ),
        native_channel_shuffle=lambda: f.native_channel_shuffle(image, 2),
        nll_loss=lambda: grads(lambda t: f.nll_loss(t, classes), a),
        one_hot=lambda: f.one_hot(classes, 12),
        pad=lambda: [
            grads(lambda t, m=mode: f.pad(t, (1, 2, 2, 1), mode=m), image)
            for mode in ("constant", "reflect", "replicate", "circular")
        ],
        pdist=lambda: grads(f.pdist, a),
        pixel_shuffle=lambda: f.pixel_shuffle(image, 2),
        pixel_unshuffle=lambda: f.pixel_unshuffle(image, 2),
        prelu=lambda: grads(f.prelu, a, x(1)),
        rms_norm=lambda: grads(lambda t: f.rms_norm(t, [12]), a),
        threshold=lambda: f.threshold(a, 0.1, 0.2),
        triplet_margin_loss=lambda: f.triplet_margin_loss(a, b, ones),
        triplet_margin_with_distance_loss=lambda: f.triplet_margin_with_distance_loss(a, b, ones),
        unfold=lambda: grads(lambda t: f.unfold(t, 3), image),
    )
    return {f"torch.nn.functional.{name}": call for name, call in table.items() if hasattr(f, name)}


def others() -> dict[str, Callable[[], object]]:
    """Return calls of other public functions by their name."""
    a, b = numbers(40, 30), numbers(40, 30, salt=1)
    array, other = (numbers(64, 64, salt=salt, dtype="float64").numpy() for salt in (1, 2))

    def initialized(name: str) -> Callable[[], object]:
        return lambda: getattr(torch.nn.init, name)(
            torch.empty(*((6, 4, 3) if name == "dirac_" else (24, 20)))
        )

    def drawn(name: str) -> Callable[[], object]:
        given: Mapping[str, Any] = {
            "beta": (0.5, 2, 50),
            "binomial": (9, 0.3, 50),
            "choice": (90, 30),
            "gamma": (2.0, 1.0, 50),
            "multinomial": (20, [0.2, 0.8]),
            "permutation": (50,),
            "poisson": (3.0, 50),
            "randint": (0, 99, 50),
        }
        return lambda: getattr(np.random, name)(
            *given.get(name, ()), **({} if name in given else {"size": 50})
        )

    def reloaded() -> object:
        file = io.BytesIO()
        torch.save({"a": a, "b": [b]}, file)
        file.seek(0)
        return torch.load(file, weights_only=True)["b"]

    def shuffled() -> object:
        order = [*range(50)]
        random.shuffle(order)
        return order

    def mixed() -> object:
        order = np.arange(50)
        np.random.shuffle(order)
        return order

    return {
        **{f"torch.nn.init.{name}": initialized(name) for name in INITIALIZERS},
        **{f"numpy.random.{name}": drawn(name) for name in NUMPY_DRAWS},
        "numpy.random.shuffle": mixed,
        "random.choice": lambda: [random.choice("abcdef") for _ in range(50)],  # noqa: S311 -- no secret
        "random.choices": lambda: random.choices(range(99), k=50),  # noqa: S311 -- likewise
        "random.randint": lambda: [random.randint(0, 10**9) for _ in range(50)],  # noqa: S311 -- likewise
        "random.shuffle": shuffled,
        "random.uniform": lambda: [random.uniform(0, 1) for _ in range(50)],  # noqa: S311 -- likewise
        "torch.cdist": lambda: with_gradients(torch.cdist, a, b),
        "torch.corrcoef": lambda: torch.corrcoef(a),
        "torch.cumprod": lambda: torch.cumprod(a, 0),
        "torch.cumsum": lambda: torch.cumsum(a, 0),
        "torch.einsum": lambda: torch.einsum("ij,kj->ik", a, b),
        "torch.histc": lambda: torch.histc(a, 20),
        "torch.linalg.cholesky": lambda: torch.linalg.cholesky(a.T @ a + 40 * torch.eye(30)),
        "torch.linalg.inv": lambda: torch.linalg.inv(a[:30] + 9 * torch.eye(30)),
        "torch.linalg.norm": lambda: torch.linalg.norm(a),
        "torch.linalg.qr": lambda: tuple(torch.linalg.qr(a)),
        "torch.load": reloaded,
        "torch.logsumexp": lambda: torch.logsumexp(a, 1),
        "torch.median": lambda: torch.median(a),
        "torch.multinomial": lambda: torch.multinomial(a.abs(), 5),
        "torch.normal": lambda: torch.normal(a, b.abs()),
        "torch.poisson": lambda: torch.poisson(a.abs() * 9),
        "torch.quantile": lambda: torch.quantile(a, 0.3, dim=1),
        "torch.sort": lambda: tuple(torch.sort(a, dim=1)),
        "torch.std": lambda: torch.std(a, 1),
        "torch.tensordot": lambda: torch.tensordot(a, b, dims=2),
        "torch.topk": lambda: tuple(torch.topk(a, 5)),
        "torch.unique": lambda: torch.unique(indices(500, 90)),
        "torch.var": lambda: torch.var(a, 0),
        "numpy.convolve": lambda: np.convolve(array[0], other[0]),
        "numpy.cumsum": lambda: np.cumsum(array),
        "numpy.dot": lambda: np.dot(array, other),
        "numpy.einsum": lambda: np.einsum("ij,kj->ik", array, other, optimize=True),
        "numpy.exp": lambda: np.exp(array),
        "numpy.fft.fft": lambda: np.fft.fft(array),
        "numpy.linalg.eigh": lambda: tuple(np.linalg.eigh(array + array.T)),
        "numpy.linalg.inv": lambda: np.linalg.inv(array + 20 * np.eye(64)),
        "numpy.linalg.solve": lambda: np.linalg.solve(array + 20 * np.eye(64), other),
        "numpy.linalg.svd": lambda: tuple(np.linalg.svd(array)),
        "numpy.log": lambda: np.log(np.abs(array) + 0.1),
        "numpy.matmul": lambda: np.matmul(array, other),
        "numpy.mean": lambda: np.mean(array),
        "numpy.percentile": lambda: np.percentile(array, 30),
        "numpy.std": lambda: np.std(array),
        "numpy.sum": lambda: np.sum(array, axis=0),
    }


def public(name: str) -> object:
    """Return a function by its public name."""
    first, *rest = name.split(".")
    module: Any = {"torch": torch, "numpy": np, "random": random}[first]
    return reduce(getattr, rest, module)


@check(WITHIN, ACROSS, order=430)
def functions(_: str) -> Results:
    """Public functions of torch, NumPy and random that no other check calls repeat."""
    results: dict[str, object] = {}
    for name, call in {**functional(), **others()}.items():
        torch.manual_seed(5)
        np.random.seed(5)
        random.seed(5)
        results[name] = flattened(call())
    note(f"{len(results)} functions")
    return results


# --- linkage ----------------------------------------------------------------------------------------------
# Shared objects (ELF) and the libraries that they need: read from their headers, never loaded.

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SONAME = 1, 5, 14
SYSTEM_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
MOST_DYNAMIC = 1 << 20
"""Bytes of a dynamic section, or of a name in it, that are read at most."""

DRIVER = re.compile(r"lib(cuda|nvidia-[a-z0-9-]+|nvcuvid|nvoptix|hsa-runtime64|amdhip64)\.so(\.[0-9.]+)?")
"""Libraries of a GPU's driver, which the host brings."""

CUDA_MAJOR = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc)\.so\.([0-9]+)(?:\..*)?")
"""Libraries of CUDA whose number is that of CUDA itself."""

DEBIAN_EXCEPTIONS = {
    **dict.fromkeys(("glib-2.0", "gthread-2.0", "gobject-2.0", "gio-2.0", "gmodule-2.0"), "libglib2.0-0"),
    "GLU": "libglu1-mesa",
    "asound": "libasound2",
    "lzma": "liblzma5",
    "EGL": "libegl1",
}
"""Libraries, without lib and number, whose Debian package is not named by the rule of Debian's policy."""


@dataclass(frozen=True)
class SharedObject:
    """What a shared object says of itself."""

    path: str
    soname: str
    needed: tuple[str, ...]


def shared_object(path: str) -> SharedObject | None:
    """Return what a file's dynamic section names; None where it has none, or is no 64-bit ELF file."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- faster at 10,000 files
            entries = dynamic_entries(file)
            if entries is None:
                return None
            names = [(tag, text) for tag, text in entries if tag in (DT_NEEDED, DT_SONAME)]
    except (OSError, OverflowError, struct.error, ValueError):
        return None
    soname = next((text for tag, text in names if tag == DT_SONAME), Path(path).name)
    return SharedObject(path, soname, tuple(text for tag, text in names if tag == DT_NEEDED))


def dynamic_entries(file: BinaryIO) -> list[tuple[int, str]] | None:
    """Return tag and text of the entries of a dynamic section that name a library."""
    head = file.read(64)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return None
    offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    file.seek(offset)
    table = file.read(size * count)
    segments = [struct.unpack_from("<IIQQQQ", table, index * size) for index in range(count)]
    dynamic = next((segment for segment in segments if segment[0] == PT_DYNAMIC), None)
    if dynamic is None:
        return None
    file.seek(dynamic[2])
    raw = file.read(min(dynamic[5], MOST_DYNAMIC))
    pairs = list(struct.iter_unpack("<QQ", raw[: len(raw) // 16 * 16]))
    strings = next((value for tag, value in pairs if tag == DT_STRTAB), None)
    loaded = [
        s for s in segments if s[0] == PT_LOAD and strings is not None and s[3] <= strings < s[3] + s[5]
    ]
    if strings is None or not loaded:
        return None  # as where debug information was taken out into a file of its own
    start = loaded[0][2] + strings - loaded[0][3]
    found = []
    for tag, value in pairs:
        if tag in (DT_NEEDED, DT_SONAME):
            file.seek(start + value)
            found.append((tag, file.read(4096).split(b"\0")[0].decode("utf-8", "replace")))
        if tag == 0:
            break
    return found


def shared_objects(folder: str) -> Iterator[SharedObject]:
    """Give the shared objects below a folder, in the order of their paths."""
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".so") or ".so." in name:
                found = shared_object(os.path.join(place, name))  # noqa: PTH118 -- as above
                if found is not None:
                    yield found


@lru_cache(maxsize=None)
def installed_objects() -> tuple[SharedObject, ...]:
    """Return the shared objects of the environment."""
    return tuple(shared_objects(sys.prefix))


@lru_cache(maxsize=None)
def library_names() -> frozenset[str]:
    """Return the names of the libraries in the environment, and where the system keeps its own."""
    names = {name for each in installed_objects() for name in (each.soname, Path(each.path).name)}
    for folder in SYSTEM_FOLDERS:
        for _, _, files in os.walk(folder):
            names.update(name for name in files if ".so" in name)
    return frozenset(names)


def missing(objects: Sequence[SharedObject]) -> list[str]:
    """Return the libraries that shared objects need and nothing in the image has; not those of a driver."""
    needed = {name for each in objects for name in each.needed if not DRIVER.fullmatch(name)}
    return sorted(name for name in needed if "/" not in name and name not in library_names())


def debian_package(library: str) -> str:
    """Return the Debian package that has a library, by the rule of Debian's policy (8.1) for its name."""
    stem, _, number = re.sub("^lib", "", library).partition(".so")
    if stem in DEBIAN_EXCEPTIONS:
        return DEBIAN_EXCEPTIONS[stem]
    number = number.lstrip(".")
    dash = "-" if stem[-1:].isdigit() and number else ""
    return f"lib{stem}{dash}{number}".lower().replace("_", "-")


# --- requested --------------------------------------------------------------------------------------------
# The packages that the request names: each can be imported, and none is made for another CUDA.

IMPORT_SECONDS = 60.0
"""How long one package may take to be imported."""

ASIDE = re.compile(r"_.*|tests?|testing|docs?|examples?|scripts?|benchmarks?|conftest|setup|tools?")
"""Names at the top of a distribution that are not what its users import, where it has others."""

WANTS_GPU = re.compile(r"(?!ModuleNotFoundError).*(cuda|gpu|nvidia|driver)", re.IGNORECASE)

OF_TORCH = re.compile(r"ImportError: lib(c10|torch)\w*\.so: cannot open shared object file")
"""What an extension of PyTorch says if it is imported before torch, which loads the libraries it links."""


def requested_names() -> list[str]:
    """Return the names of the packages that the request of the image's lock names; raises `NotRun`."""
    table = locked()["request"]
    names = [re.match(r"[A-Za-z0-9._-]+", each) for each in table["packages"]]
    return sorted({re.sub(r"[-_.]+", "-", name[0]).lower() for name in names if name})


def distribution_of(name: str) -> importlib.metadata.Distribution | None:
    """Return an installed distribution; None where there is none, as for packages of conda's."""
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def modules_of(found: importlib.metadata.Distribution, name: str) -> list[str]:
    """Return the modules that a distribution is imported by, from the list of its files (RECORD).

    Where one has the distribution's name it is that one; else all at the top, without tests and the like.
    """
    tops: dict[str, bool] = {}
    for file in found.files or ():
        form = re.fullmatch(r"([A-Za-z_]\w*)(\.py|(?:\.[\w-]+)?\.so)", file.parts[0])
        if len(file.parts) == 1 and form is not None:
            tops[form[1]] = True
        elif len(file.parts) > 1 and file.parts[0].isidentifier() and file.name.endswith((".py", ".so")):
            tops[file.parts[0]] = tops.get(file.parts[0], False) or file.parts[1:] == ("__init__.py",)
    named = [top for top in tops if re.sub(r"[-_.]+", "-", top).lower() == name]
    if named:
        return named
    regular = sorted(top for top, whole in tops.items() if whole) or namespaced(found, tops)
    return [top for top in regular if not ASIDE.fullmatch(top)] or regular[:1]


def namespaced(found: importlib.metadata.Distribution, tops: Collection[str]) -> list[str]:
    """Return the packages just below namespaces that distributions share, as in ``google.protobuf``."""
    files = found.files or ()
    below = {f"{f.parts[0]}.{f.parts[1]}" for f in files if len(f.parts) == 3 and f.name == "__init__.py"}
    return sorted(
        each for each in below if each.split(".")[0] in tops and each.replace(".", "").isidentifier()
    )


def objects_of(found: importlib.metadata.Distribution) -> list[SharedObject]:
    """Return the shared objects of a distribution."""
    paths = {
        os.path.realpath(str(found.locate_file(file))) for file in found.files or () if ".so" in file.name
    }
    return [each for each in installed_objects() if os.path.realpath(each.path) in paths]


def import_error(*modules: str) -> str:
    """Import modules in a process of their own; return the last line of what went wrong, or nothing."""
    command = [sys.executable, "-c", f"import {', '.join(modules)}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=IMPORT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it takes longer than {IMPORT_SECONDS:.0f} s"
    if done.returncode < 0:
        return f"the process was ended by signal {-done.returncode}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (lines[-1] if lines else f"exit status {done.returncode}")[:500] if done.returncode else ""


def cure(libraries: Sequence[str]) -> str:
    """Return what to write into the request for libraries that are missing."""
    packages = sorted({debian_package(library) for library in libraries if not CUDA_MAJOR.fullmatch(library)})
    listed = ", ".join(f'"{package}"' for package in packages)
    return f"; no package of the image has {', '.join(libraries)}" + (
        f": add apt = [{listed}]" if packages else ""
    )


@check(SETTING, order=960, once=True)
def requested_imports(_: str) -> Results:
    """Every package that the request names can be imported, each in a process of its own."""
    found = {name: distribution_of(name) for name in requested_names()}
    modules = {
        module: (name, each) for name, each in found.items() if each for module in modules_of(each, name)
    }
    if not modules:
        raise NotRun("the request names no packages")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        errors = dict(zip(modules, pool.map(import_error, modules)))
    lines = []
    for module, error in errors.items():
        name, each = modules[module]
        if OF_TORCH.match(error) and not (error := import_error("torch", module)):
            note(f"{module} has to be imported after torch")
        libraries = missing(objects_of(each)) if error else []
        if error and not libraries and WANTS_GPU.match(error) and gpu_missing():
            note(f"{name} cannot be imported without a GPU: {error}")
        elif error:
            text = error + (cure(libraries) if libraries else "")
            lines.append({"what": f"import {module} ({name})", "expected": "no error", "got": text})
    if lines:
        raise Failed(f"cannot be imported: {', '.join(line['what'].split()[1] for line in lines)}", lines)
    note(f"{len(modules)} modules")
    return None


@check(SETTING, order=965, once=True)
def linked_cuda(_: str) -> Results:
    """No package links CUDA's libraries of another major version alone than the image has."""
    objects = installed_objects()
    have = {form[1] for each in objects if (form := CUDA_MAJOR.fullmatch(Path(each.path).name))}
    if not have:
        raise NotRun("the image has no CUDA libraries")
    wants: dict[str, dict[str, str]] = {}
    for each in objects:
        parts = Path(each.path).parts
        at = parts.index("site-packages") + 1 if "site-packages" in parts else 0
        for library in each.needed:
            if at and (form := CUDA_MAJOR.fullmatch(library)):
                wants.setdefault(parts[at], {})[form[1]] = library
    # A package with an object for each CUDA loads the one that fits, as bitsandbytes does.
    wrong = {name: found for name, found in wants.items() if not have & found.keys()}
    if wrong:
        expected = f"CUDA {', '.join(sorted(have))}"
        detail = [
            {"what": name, "expected": expected, "got": ", ".join(found.values())}
            for name, found in wrong.items()
        ]
        raise Failed(f"built for another CUDA: {', '.join(wrong)}", detail)
    for name in sorted({Path(each.path).name for each in objects if missing([each])}):
        lacking = missing([each for each in objects if Path(each.path).name == name])
        note(f"{name} needs {', '.join(lacking)}, which no package of the image has")
    return None


# --- cases ------------------------------------------------------------------------------------------------
# Operations that have had no deterministic algorithm in some version of torch.

def cases() -> dict[str, tuple[str, str, Callable[[str], object]]]:  # noqa: C901 -- a table
    """Return operations that have had no deterministic algorithm in some version of torch.

    Label → (name in the documentation, a word of its condition there, what to run on a device).
    """
    f, grads, n = torch.nn.functional, with_gradients, 20_000

    def x(*shape: int, salt: int = 0) -> Callable[[str], torch.Tensor]:
        return lambda device: numbers(*shape, salt=salt, device=device)

    def into(device: str, below: int = 100, salt: int = 5) -> torch.Tensor:
        return indices(n, below, salt=salt, device=device)

    many, few, image, cube = x(n), x(100, salt=1), x(2, 3, 16, 16), x(2, 3, 8, 8, 8)

    def fractional(device: str) -> dict[str, torch.Tensor]:
        samples = numbers(2, 3, 2, salt=9, device=device).abs()
        return grads(
            lambda a: f.fractional_max_pool2d(a, 3, output_size=8, _random_samples=samples), image(device)
        )

    def unpool(device: str) -> torch.Tensor:
        return f.max_unpool2d(*f.max_pool2d(image(device), 2, return_indices=True), [2, 2])

    def grid(device: str) -> dict[str, torch.Tensor]:
        return grads(
            lambda a, g: f.grid_sample(a, g, align_corners=False), image(device), x(2, 40, 40, 2)(device)
        )

    def ctc(device: str) -> dict[str, torch.Tensor]:
        lengths = torch.full((4,), 50), torch.full((4,), 10)
        words = 1 + indices(40, 9, device=device).view(4, 10)
        return grads(lambda a: f.ctc_loss(a.log_softmax(2), words, *lengths), x(50, 4, 10)(device))

    def bag(device: str) -> dict[str, torch.Tensor]:
        return grads(lambda w: f.embedding_bag(into(device).view(-1, 10), w, mode="max"), x(100, 8)(device))

    def nll(device: str) -> dict[str, torch.Tensor]:
        return grads(lambda a: f.nll_loss(a, indices(512, 3, device=device).view(2, 16, 16)), image(device))

    def reduced(device: str, how: str) -> torch.Tensor:
        return few(device).scatter_reduce(0, into(device), many(device), how)

    def reflected(device: str) -> dict[str, torch.Tensor]:
        return grads(lambda a: f.pad(a, (3, 3, 3, 3), mode="reflect"), image(device))

    def replicated(device: str) -> dict[str, torch.Tensor]:
        return grads(lambda a: f.pad(a, (3, 3, 3, 3), mode="replicate"), image(device))

    def placed(device: str, *, accumulate: bool) -> torch.Tensor:
        return few(device).put_(into(device), many(device), accumulate=accumulate)

    def indexed(device: str, *, accumulate: bool) -> torch.Tensor:
        return few(device).index_put((into(device),), many(device), accumulate=accumulate)

    return {
        "put_": ("torch.Tensor.put_", "accumulate=False", lambda d: placed(d, accumulate=False)),
        "put_ accumulate": ("torch.Tensor.put_", "accumulate=True", lambda d: placed(d, accumulate=True)),
        "max_unpool2d": ("torch.nn.MaxUnpool2d", "", unpool),
        "index_put": ("torch.Tensor.index_put", "accumulate=False", lambda d: indexed(d, accumulate=False)),
        "index_put accumulate": (
            "torch.Tensor.index_put", "accumulate=True", lambda d: indexed(d, accumulate=True)
        ),
        "index_copy": (
            "torch.Tensor.index_copy", "", lambda d: few(d).index_copy(0, into(d), many(d))
        ),
        "index_add": ("torch.index_add", "", lambda d: few(d).index_add(0, into(d), many(d))),
        "scatter": ("torch.Tensor.scatter", "src", lambda d: few(d).scatter(0, into(d), many(d))),
        "scatter_add_": (
            "torch.Tensor.scatter_add_", "", lambda d: few(d).scatter_add_(0, into(d), many(d))
        ),
        "scatter_reduce sum": ("torch.Tensor.scatter_reduce", "sum", lambda d: reduced(d, "sum")),
        "scatter_reduce prod": ("torch.Tensor.scatter_reduce", "prod", lambda d: reduced(d, "prod")),
        "gather backward": (
            "torch.gather", "", lambda d: grads(lambda a: a.gather(0, into(d)), few(d))
        ),
        "index_select backward": (
            "torch.index_select", "", lambda d: grads(lambda a: a.index_select(0, into(d)), few(d))
        ),
        "indexing backward": (
            "torch.Tensor.__getitem__", "", lambda d: grads(lambda a: a[into(d)], x(100, 4)(d))
        ),
        "repeat_interleave backward": (
            "torch.repeat_interleave", "", lambda d: grads(lambda a: a.repeat_interleave(50), few(d))
        ),
        "replication_pad2d backward": ("torch.nn.ReplicationPad2d", "", replicated),
        "reflection_pad2d backward": ("torch.nn.ReflectionPad2d", "", reflected),
        "max_pool3d backward": (
            "torch.nn.MaxPool3d", "", lambda d: grads(lambda a: f.max_pool3d(a, 3, 1), cube(d))
        ),
        "avg_pool3d backward": (
            "torch.nn.AvgPool3d", "", lambda d: grads(lambda a: f.avg_pool3d(a, 3, 1), cube(d))
        ),
        "adaptive_avg_pool2d backward": (
            "torch.nn.AdaptiveAvgPool2d", "", lambda d: grads(lambda a: f.adaptive_avg_pool2d(a, 5), image(d))
        ),
        "adaptive_avg_pool3d backward": (
            "torch.nn.AdaptiveAvgPool3d", "", lambda d: grads(lambda a: f.adaptive_avg_pool3d(a, 3), cube(d))
        ),
        "adaptive_max_pool2d backward": (
            "torch.nn.AdaptiveMaxPool2d", "", lambda d: grads(lambda a: f.adaptive_max_pool2d(a, 5), image(d))
        ),
        "fractional_max_pool2d backward": ("torch.nn.FractionalMaxPool2d", "", fractional),
        "interpolate backward": (
            "torch.nn.functional.interpolate", "bilinear",
            lambda d: grads(lambda a: f.interpolate(a, scale_factor=2.5, mode="bilinear"), image(d)),
        ),
        "nll_loss": ("torch.nn.NLLLoss", "", nll),
        "ctc_loss backward": ("torch.nn.CTCLoss", "", ctc),
        "embedding_bag max backward": ("torch.nn.EmbeddingBag", "max", bag),
        "grid_sample backward": ("torch.nn.functional.grid_sample", "", grid),
        "histc": ("torch.histc", "", lambda d: torch.histc(many(d), 50)),
        "bincount weights": ("torch.bincount", "weights", lambda d: torch.bincount(into(d), many(d))),
        "median indices": ("torch.median", "", lambda d: tuple(many(d).median(0))),
        "kthvalue": ("torch.kthvalue", "", lambda d: tuple(many(d).kthvalue(70))),
        "cumsum": ("torch.cumsum", "", lambda d: many(d).cumsum(0)),
    }  # fmt: skip


# --- documented -------------------------------------------------------------------------------------------
# What torch's documentation says of such operations, and what they do.

REPEATS = 10  # of a control, with determinism on


def documented(name: str, word: str, device: str) -> str:
    """Return what the installed torch's documentation says of an operation on a device, with the flag on.

    "raises", "repeats", or nothing where it lists no such case; from the docstring of
    torch.use_deterministic_algorithms, whose lists change with the version.
    """
    text = torch.use_deterministic_algorithms.__doc__ or ""
    _, _, switching = text.partition("will act\n")
    switching, _, raising = switching.partition("will throw a\n")
    for section, behaviour in ((switching, "repeats"), (raising.partition("In addition")[0], "raises")):
        for item in section.split("* :")[1:]:
            words = " ".join(item.split())
            # Of a choice of modes, each stands on a line of its own.
            if f"`{name}`" in words.split(" ")[0] and word in words:
                named = {where for where in BOTH if where.upper() in words}
                if not named or device in named:
                    return behaviour
    return ""


def observed(operation: Callable[[str], object], device: str) -> str:
    """Return "raises" or "repeats" (in ten runs); raises `Failed` when runs differ."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            must_repeat(lambda: operation(device), REPEATS)
    except RuntimeError as error:
        if "determinis" not in str(error):
            raise
        return "raises"
    return "repeats"


@check(SETTING, devices=BOTH, order=440, hooked=True)
def raises(device: str) -> Results:
    """What lacks a deterministic algorithm raises or repeats; notes say where the documentation errs."""
    seen: dict[str, str] = {}
    for label, (name, word, operation) in cases().items():
        try:
            seen[label] = observed(operation, device)
        except Failed as failure:
            raise Failed(f"{label} {failure}, with determinism on", failure.detail) from None
        said = documented(name, word, device)
        if said and said != seen[label]:
            note(f"{label}: documented: {said}; here it {seen[label]}")
        elif not said and seen[label] == "raises":
            note(f"{label}: raises, which the documentation does not say")
    # The two that raise on every device in every torch from 2.4 to 2.13.
    for label in ("put_", "max_unpool2d"):
        if seen[label] != "raises":
            line = {"what": label, "expected": "RuntimeError", "got": "a result"}
            raise Failed(f"{label} gave a result: deterministic algorithms are not enforced", [line])
    raising = [label for label, how in seen.items() if how == "raises"]
    note(f"{len(seen)} operations; {len(raising)} raise here: {', '.join(raising)}")
    return {label: how.encode() for label, how in seen.items()}


# --- compilation ------------------------------------------------------------------------------------------
# torch.compile.

def toolchain_missing(device: str) -> str:
    """Return what torch.compile lacks here and how to add it, or nothing. It needs no torch.

    Only Debian's Python has its headers in a package; any other brings them.
    """
    lacking = []
    if not any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++"))):
        lacking.append(("a C++ compiler", "g++"))
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        lacking.append(("Python's headers", f"python3.{sys.version_info.minor}-dev"))
        if sys.base_prefix != "/usr":
            return f"torch.compile needs Python's headers, which the Python in {sys.base_prefix} lacks"
    if lacking:
        what, packages = (" and ".join(each) for each in zip(*lacking))
        packages = packages.replace(" and ", '", "')
        return f'torch.compile needs {what}: add apt = ["{packages}"] to the request'
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        return "torch.compile on a GPU needs triton, which is not installed: add it to the request's packages"
    return ""


@check(WITHIN, ACROSS, devices=BOTH, part="full", order=450, missing=toolchain_missing)
def compiled(device: str) -> Results:
    """torch.compile of a small model repeats in two processes with empty caches, forward and backward."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            stack.callback(_restore, name, os.environ.get(name))
            os.environ[name] = f"{folder}/{name}"
        torch._dynamo.reset()
        layers = torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 10)
        model = filled(torch.nn.Sequential(*layers), device)
        fast: Any = torch.compile(model)
        results = module_with_gradients(fast, numbers(32, 64, device=device))
        if not any(Path(folder).rglob("*.*")):
            raise RuntimeError("torch.compile compiled nothing")
        return results


def _restore(name: str, value: str | None) -> None:
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


# --- golden -----------------------------------------------------------------------------------------------
# Results that are the same on every machine.

@check(WITHIN, ACROSS, GOLDEN, order=500)
def golden_streams(_: str) -> Results:
    """Random numbers after a seed are those that this torch gives on the CPU of every machine."""
    torch.manual_seed(20240915)
    weights = numbers(1000).abs()
    results: dict[str, object] = {
        "rand": torch.rand(1000),
        "rand float64": torch.rand(1000, dtype=torch.float64),
        "randint": torch.randint(0, 1 << 40, (1000,)),
        "randperm": torch.randperm(1000),
        "bernoulli": torch.bernoulli(weights),
        # Fewer than 16, since more take vector instructions; float32, so that a last bit of the C library's
        # logarithm is rounded away.
        "randn": torch.randn(15),
        "Generator": torch.rand(1000, generator=torch.Generator().manual_seed(7)),
    }
    # From a vector library's logarithm: its last bits are rounded away likewise.
    results["exponential"] = torch.empty(100).exponential_().bfloat16()
    results["multinomial"] = torch.multinomial(weights, 100)
    state = np.random.RandomState(20240915)  # its streams are frozen (NEP 19), those of Generator are not
    results["numpy rand"] = state.rand(100)
    results["numpy standard_normal"] = state.standard_normal(100).astype(np.float32)
    results["numpy permutation"] = state.permutation(100)
    plain = random.Random(20240915)  # noqa: S311 -- no secret
    results["random"] = [plain.random() for _ in range(100)]
    results["random sample"] = plain.sample(range(1000), 100)
    results["DistributedSampler"] = torch.tensor(list(sampler_of(100, 1)))
    return results


@check(WITHIN, ACROSS, GOLDEN, order=505)
def golden_arithmetic(_: str) -> Results:
    """Integer and exactly rounded operations, and sums of a fixed order, give the same everywhere."""
    a, b = numbers(1000, 8), numbers(1000, 8, salt=1)
    whole = indices(10_000, 1 << 30, salt=2)
    rows, index = numbers(20_000, 8), indices(20_000, 1000, salt=3)
    words = indices(20_000, 500)
    results = {
        "inputs": numbers(1000, dtype="float64"),
        "add": a + b,
        "multiply": a * b,
        "divide": a / b,
        "bfloat16": a.bfloat16(),
        "sort": torch.sort(whole).values,
        "argsort": torch.argsort(whole % 100, stable=True),
        "unique": torch.unique(whole % 100, return_counts=True)[1],
        "bincount": torch.bincount(whole % 100),
        "integer matmul": whole[:4096].view(64, 64) @ whole[4096:8192].view(64, 64),
        "integer cumsum": whole.cumsum(0),
        "cumsum": a.cumsum(0),
        "index_add": a.index_add(0, index, rows),
        "scatter_add": a.scatter_add(0, index[:, None].expand(-1, 8), rows),
        "index_put": a.index_put((index,), rows, accumulate=True),
    }
    found = with_gradients(lambda table: torch.nn.functional.embedding(words, table), numbers(500, 32))
    return {**results, "embedding backward": found["gradient0"]}


def compare_golden(name: str, results: Mapping[str, str]) -> None:
    """Compare a check's results with the values kept for this version of torch.

    Raises `Failed` where they differ, `NotRun` where there are none.
    """
    path, release = image_file("golden.json"), torch.__version__.partition("+")[0]
    if not path.exists():
        raise NotRun(f"no golden values: {path} does not exist")
    place = f"torch {release} on {platform.machine()}"
    golden = json.loads(path.read_text("utf-8")).get(place, {}).get(name)
    if golden is None:
        raise NotRun(f"no golden values are kept for {place}")
    lines = [
        {"what": what, "expected": golden.get(what, "none"), "got": results.get(what, "none")}
        for what in {**golden, **results}
        if golden.get(what) != results.get(what)
    ]
    if lines:
        raise Failed(f"not the numbers of {place}, which are the same on every machine", lines)


# --- controls ---------------------------------------------------------------------------------------------
# Controls: nondeterminism that must be seen.

TRIES = 50  # of a control, before it says that it saw nothing


def prove(on: Callable[[], object], off: Callable[[], object], repeats: int = REPEATS) -> None:
    """See results differ with determinism off, and repeat (or be refused) with it on.

    ``on`` and ``off`` each give one result. Raises `Failed` when those of ``on`` differ, and `Inconclusive`
    when `TRIES` of ``off`` do not.
    """
    try:
        must_repeat(on, repeats)
    except RuntimeError as error:
        if "determinis" not in str(error):
            raise
        note("with determinism on, torch refuses it")
    first = flattened(off())
    for attempt in range(2, TRIES + 1):
        if flattened(off()) != first:
            note(f"with determinism off, run {attempt} differed from the first")
            return
    cores = len(os.sched_getaffinity(0))
    raise Inconclusive(f"{TRIES} runs with determinism off did not differ ({cores} cores)")


def prove_flag(run: Callable[[], object]) -> None:
    """`prove` for an operation that torch's flag makes deterministic.

    Two threads, whatever the image's number, since one thread has nothing to race with.
    """

    def under(*, deterministic: bool) -> object:
        with setting(deterministic=deterministic, threads=2), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run()

    prove(lambda: under(deterministic=True), lambda: under(deterministic=False))


def prove_seed(seed: Callable[..., object], draw: Callable[[], object], repeats: int = REPEATS) -> None:
    """`prove` for a generator: ``seed`` takes a number, or nothing for a seed from the system."""
    prove(lambda: (seed(7), draw())[1:], lambda: (seed(), draw())[1:], repeats)


@check(CONTROL, devices=BOTH, order=800)
def control(device: str) -> Results:
    """This test can see nondeterminism here: there with the flag off, gone with it on."""
    # The 1-D form, index_add and scatter_add are stable on the CPU even with the flag off.
    rows, index = numbers(200_000, 8, device=device), indices(200_000, 1000, device=device)

    def add() -> torch.Tensor:
        if device == "cuda":
            return torch.zeros(1000, 8, device=device).index_add_(0, index, rows)
        return torch.zeros(1000, 8).index_put_((index,), rows, accumulate=True)

    prove_flag(add)
    return None


@check(CONTROL, part="prove", order=805)
def prove_index_put(device: str) -> Results:
    """index_put_ that accumulates 200,000 rows of 8 in 1,000 slots races without the flag."""
    return control(device)


# On the CPU alone: CUDA sorts what index_put accumulates, and so the gradients of w[idx] and of an embedding,
# whatever the flag says (pytorch/pytorch#55827); they repeat without it.
@check(CONTROL, part="prove", order=810)
def prove_indexing(device: str) -> Results:
    """The gradient of w[idx], a million rows from a thousand, races without the flag."""
    weights, index = numbers(1000, 4, device=device), indices(1_000_000, 1000, device=device)
    prove_flag(lambda: with_gradients(lambda w: w[index], weights)["gradient0"])
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=815)
def prove_index_add(device: str) -> Results:
    """index_add_ of a million values in a hundred slots races without the flag."""
    values, index = numbers(1_000_000, device=device), indices(1_000_000, 100, device=device)
    prove_flag(lambda: torch.zeros(100, device=device).index_add_(0, index, values))
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=820)
def prove_scatter_add(device: str) -> Results:
    """scatter_add_ of a million values in a thousand slots races without the flag."""
    values, index = numbers(1_000_000, device=device), indices(1_000_000, 1000, device=device)
    prove_flag(lambda: torch.zeros(1000, device=device).scatter_add_(0, index, values))
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=825)
def prove_index_select(device: str) -> Results:
    """The gradient of index_select, a million rows from a thousand, races without the flag."""
    rows, index = numbers(1000, 4, device=device), indices(1_000_000, 1000, device=device)
    prove_flag(lambda: with_gradients(lambda w: w.index_select(0, index), rows)["gradient0"])
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=827)
def prove_gather(device: str) -> Results:
    """The gradient of gather, four million values from four thousand, races without the flag."""
    rows, index = numbers(1000, 4, device=device), indices(1_000_000, 1000, device=device)
    wide = index[:, None].expand(-1, 4)
    prove_flag(lambda: with_gradients(lambda w: w.gather(0, wide), rows)["gradient0"])
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=830)
def prove_grid_sample(device: str) -> Results:
    """The gradient of grid_sample races without the flag, and is refused with it."""
    image, grid = numbers(4, 3, 32, 32, device=device), numbers(4, 256, 256, 2, salt=1, device=device)
    sample = torch.nn.functional.grid_sample
    prove_flag(lambda: with_gradients(lambda x: sample(x, grid, align_corners=False), image)["gradient0"])
    return None


@check(CONTROL, part="prove", devices=("cuda",), order=835)
def prove_cumsum(device: str) -> Results:
    """A cumulative sum of four million values races without the flag."""
    values = numbers(4_000_000, device=device)
    prove_flag(lambda: values.cumsum(0))
    return None


@check(CONTROL, part="prove", devices=BOTH, order=840)
def prove_torch_seed(device: str) -> Results:
    """torch's numbers change without a seed and repeat with one."""

    def seed(*number: int) -> None:
        torch.manual_seed(*number) if number else torch.seed()

    prove_seed(seed, lambda: torch.rand(100, device=device))
    return None


@check(CONTROL, part="prove", order=845)
def prove_python_seed(_: str) -> Results:
    """The numbers of random change without a seed and repeat with one."""
    prove_seed(random.seed, lambda: [random.random() for _ in range(100)])  # noqa: S311 -- no secret
    return None


@check(CONTROL, part="prove", order=850)
def prove_numpy_seed(_: str) -> Results:
    """NumPy's numbers change without a seed and repeat with one."""
    prove_seed(np.random.seed, lambda: np.random.rand(100))
    return None


@check(CONTROL, part="prove", order=855)
def prove_hash_seed(_: str) -> Results:
    """The order of a set of 50 words changes with the process without PYTHONHASHSEED and repeats with it."""

    def order(seed: str) -> bytes:
        code = "print(list({str(i) for i in range(50)}))"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.check_output([sys.executable, "-S", "-c", code], env=environment, timeout=60)

    baked = os.environ.get("PYTHONHASHSEED", "random")
    prove(lambda: order(baked), lambda: order("random"))
    return None


@check(CONTROL, part="prove", order=860)
def prove_workers(_: str) -> Results:
    """The numbers of a DataLoader's two workers change without a seed and repeat with one."""

    def seed(*number: int) -> None:
        torch.manual_seed(*number) if number else torch.seed()

    def epoch() -> list[torch.Tensor]:
        items: Any = Draws()
        loader = torch.utils.data.DataLoader(
            items, batch_size=4, num_workers=2, multiprocessing_context="fork"
        )
        return [torch.cat(column) for column in zip(*loader)]

    prove_seed(seed, epoch, repeats=3)
    return None


# --- cost -------------------------------------------------------------------------------------------------
# What determinism costs.

def workloads(device: str) -> dict[str, Callable[[], object]]:
    """Return operations by name, their inputs made beforehand; the size is for some milliseconds on a CPU."""
    f, nn, grads = torch.nn.functional, torch.nn, with_gradients

    def x(*shape: int, salt: int = 0) -> torch.Tensor:
        return numbers(*shape, salt=salt, device=device)

    n = 1_000_000 if device == "cuda" else 100_000
    rows, slots, index = x(n, 8), x(1000, 8, salt=1), indices(n, 1000, salt=2, device=device)
    wide, image, a, b = index[:, None].expand(-1, 8), x(8, 16, 48, 48), x(384, 384), x(384, 384, salt=1)
    conv, transposed = (
        filled(getattr(nn, name)(16, 16, 3), device) for name in ("Conv2d", "ConvTranspose2d")
    )
    lstm, norm = filled(nn.LSTM(32, 48), device), filled(nn.LayerNorm(512), device)
    sequence, lines, heads = x(24, 8, 32), x(256, 512), [x(2, 4, 96, 32, salt=salt) for salt in range(3)]
    return {
        "conv2d": lambda: module_with_gradients(conv, image),
        "conv_transpose2d": lambda: module_with_gradients(transposed, image),
        "matmul": lambda: a @ b,
        "lstm": lambda: module_with_gradients(lstm, sequence),
        "layer_norm": lambda: module_with_gradients(norm, lines),
        "attention": lambda: grads(f.scaled_dot_product_attention, *heads),
        "index_add": lambda: slots.index_add(0, index, rows),
        "scatter_add": lambda: slots.scatter_add(0, wide, rows),
        "index_put": lambda: slots.index_put((index,), rows, accumulate=True),
        "index_copy": lambda: slots.index_copy(0, index, rows),
        "embedding backward": lambda: grads(lambda table: f.embedding(index, table), slots),
        "gather backward": lambda: grads(lambda s: s.gather(0, wide), slots),
        "interpolate backward": lambda: grads(
            lambda i: f.interpolate(i, scale_factor=2, mode="bilinear"), image
        ),
        "max_pool2d backward": lambda: grads(lambda i: f.max_pool2d(i, 3, 1), image),
        "cumsum": lambda: rows.cumsum(0),
        "sum": rows.sum,
        "sort": index.sort,
        "empty": lambda: torch.empty(n, 8, device=device),
        "training step": lambda: train(device, "SGD", {"lr": 0.1}, steps=1),
    }


def whole_step(device: str) -> Callable[[], Any]:
    """Return a training step of a transformer of 1.9 million parameters."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(192, 6, 768, dropout=0.0, batch_first=True, norm_first=True)
    model = filled(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), device)
    stepper, x = torch.optim.AdamW(model.parameters()), numbers(4, 64, 192, device=device)

    def step() -> None:
        stepper.zero_grad()
        model(x).square().mean().backward()
        stepper.step()

    return step


@contextlib.contextmanager
def whole_setting(*, deterministic: bool) -> Iterator[None]:
    """Set the flag and cuDNN's for a while; TF32 and the number of threads stay as they are."""
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic
    try:
        cudnn.deterministic = deterministic
        with setting(deterministic=deterministic):
            yield
    finally:
        cudnn.deterministic = before


@contextlib.contextmanager
def memory_filled(*, deterministic: bool) -> Iterator[None]:
    """Fill new memory for a while, or leave it as it is, with the deterministic flag as it stands."""
    fill_memory(on=deterministic)
    try:
        yield
    finally:
        fill_memory(on=False)


def cost_of(
    name: str,
    device: str,
    run: Callable[[], object],
    switch: Callable[..., AbstractContextManager[None]] = whole_setting,
    seconds: float = 0.8,
) -> dict[str, Any]:
    """Return an operation's time with ``switch`` on and off, in turns, and their ratio.

    The fastest round of each counts, since whatever else the machine does can only add to the others.
    """

    def timed(*, deterministic: bool) -> float:
        with switch(deterministic=deterministic), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            run()
            if device == "cuda":
                torch.cuda.synchronize()
            return time.perf_counter() - start

    line: dict[str, Any] = {
        "name": name,
        "device": device,
        "on": None,
        "off": None,
        "ratio": None,
        "rounds": 0,
    }
    times: dict[bool, list[float]] = {True: [], False: []}
    try:
        for flag in times:  # to warm up
            timed(deterministic=flag)
        end = time.perf_counter() + seconds
        while len(times[True]) < 10 or (time.perf_counter() < end and len(times[True]) < 200):
            for flag, taken in times.items():
                taken.append(timed(deterministic=flag))
    except Exception as error:  # noqa: BLE001 -- it becomes the reason
        return {**line, "reason": f"{type(error).__name__}: {error}".splitlines()[0]}
    on, off = min(times[True]), min(times[False])
    rounds = len(times[True])
    return {**line, "on": on, "off": off, "ratio": round(on / off, 3), "rounds": rounds, "reason": ""}


def cost_report(device: str) -> dict[str, Any]:
    """Return the report of ``--cost``; see the top of this file."""
    start = time.monotonic()
    missing = "asked for the CPU only" if device == "cpu" else gpu_missing()
    if device == "cuda" and missing:
        raise NotRun(missing)
    devices = ["cpu"] if missing else ["cpu", "cuda"]
    fill_memory(on=False)  # its cost is a line of its own
    costs = [cost_of(name, where, run) for where in devices for name, run in workloads(where).items()]
    for where in devices:
        step = whole_step(where)
        costs.append(cost_of("whole training step", where, step, seconds=3))
        costs.append(cost_of("whole training step, new memory filled", where, step, memory_filled, seconds=3))
    return {
        "schema": SCHEMA,
        "program": program_hash(),
        "mode": "cost",
        **facts(missing),
        "costs": costs,
        "seconds": round(time.monotonic() - start, 3),
    }


# --- child ------------------------------------------------------------------------------------------------
# The child: one interpreter that runs the checks.

def refuse_without(checked: Check, device: str) -> None:
    """Raise `NotRun` where something is missing that a check needs."""
    missing = checked.missing(device) if checked.missing else ""
    if missing:
        raise NotRun(missing)


def execute(checked: Check, device: str) -> Outcome:
    """Run one check; whatever it raises becomes the outcome."""
    start = time.perf_counter()
    outcome = Outcome("passed")
    NOTES.clear()
    REPEATED.made = 1
    try:
        refuse_without(checked, device)
        first = checked.run(device) or {}
        outcome.results = {name: fingerprint(value) for name, value in first.items()}
        samples = {name: kept(value) for name, value in first.items()}
        outcome.values = {name: sample for name, sample in samples.items() if sample}
        if WITHIN in checked.compares:
            second = checked.run(device) or {}
            pairs = [difference(name, value, second.get(name)) for name, value in first.items()]
            outcome.detail = [pair for pair in pairs if pair]
        if {WITHIN, ACROSS} & {*checked.compares}:
            outcome.calls = REPEATED.made * (2 if WITHIN in checked.compares else 1)
        if outcome.detail:
            outcome.status, outcome.reason = "failed", "two runs in one process differ"
        elif GOLDEN in checked.compares:
            compare_golden(checked.name, outcome.results)
    except Inconclusive as reason:
        outcome.status, outcome.reason = "inconclusive", str(reason)
    except NotRun as reason:
        outcome.status, outcome.reason = "not-run", str(reason)
    except Failed as failure:
        outcome.status, outcome.reason, outcome.detail = "failed", str(failure), failure.detail
    except Exception as error:  # noqa: BLE001 -- a check that crashes is a failed check
        outcome.status, outcome.reason = "failed", f"it crashed: {type(error).__name__}: {error}"
        outcome.traceback = traceback.format_exc()
    outcome.notes = [*NOTES]
    outcome.seconds = round(time.perf_counter() - start, 3)
    return outcome


def look_for_gpu(device: str, say: Callable[..., None]) -> str:
    """Say what machine this is; return why no GPU is tested, or nothing."""
    missing = "asked for the CPU only" if device == "cpu" else gpu_missing()
    say(**facts(missing))
    return missing


def child(report: TextIO, names: Sequence[str], device: str) -> None:
    """Run the checks and write each outcome as a line of JSON to ``report``, a text file."""

    def say(**message: object) -> None:
        report.write(json.dumps(message) + "\n")
        report.flush()

    faulthandler.enable()
    say(begin=["imports", "cpu"])
    outcome = execute(CHECKS["imports"], "cpu")
    say(end=["imports", "cpu"], outcome=asdict(outcome))
    if outcome.status == "passed":
        fill_memory()
        missing = unhooked = ""
        looked = False
        for checked in (CHECKS[name] for name in names if name != "imports"):
            # Not before what is for the CPU alone: to look for a GPU spoils CUDA for what is forked later.
            if "cuda" in checked.devices and not looked:
                missing, looked = look_for_gpu(device, say), True
            for where in checked.devices:
                if missing and where == "cuda":
                    continue
                say(begin=[checked.name, where])
                gone = checked.hooked and unhooked
                outcome = Outcome("not-run", unhooked) if gone else execute(checked, where)
                if checked.name == "setting-hook" and outcome.status == "failed":
                    unhooked = outcome.reason
                say(end=[checked.name, where], outcome=asdict(outcome))
        if not looked:
            look_for_gpu(device, say)
    say(done=True, peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


# --- parent -----------------------------------------------------------------------------------------------
# The parent: two interpreters, one report.

class Interpreter:
    """A fresh interpreter that runs `child`; its messages are gathered by a thread."""

    def __init__(self, names: Sequence[str], device: str, mode: str) -> None:
        reading, writing = os.pipe()
        command = [sys.executable, str(PROGRAM), "--child", str(writing), "--device", device]
        command += [*(["--full"] if mode == "full" else []), "--only", *names]
        # Standard output is the report's alone, so what a library prints goes to standard error. A session of
        # its own, so that a DataLoader's workers end with it.
        # Threads that wait by spinning would take the cores from the other interpreter, and double the time;
        # how they wait changes no result.
        environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.close(writing)
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        self.facts: dict[str, Any] = {}
        self.running: tuple[str, str] | None = None
        self.reader = threading.Thread(target=self._read, args=(reading,), daemon=True)
        self.reader.start()

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.endswith("\n"):  # cut off by a kill
                    return
                message = json.loads(line)
                if "begin" in message:
                    self.running = message["begin"][0], message["begin"][1]
                elif "end" in message:
                    self.outcomes[message["end"][0], message["end"][1]] = Outcome(**message["outcome"])
                    self.running = None
                else:
                    self.facts.update(message)

    def finish(self, deadline: float) -> None:
        """Wait for its end, or kill it at ``deadline`` of time.monotonic; the check it was in has failed."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
            ending = f"the process ended with status {self.process.returncode}"
            if self.process.returncode < 0:
                ending = f"the process was ended by {signal.Signals(-self.process.returncode).name}"
        except subprocess.TimeoutExpired:
            ending = "the time limit passed"
        self.kill()
        self.reader.join()
        if not self.facts.get("done"):
            where = "in this check" if self.running else "between two checks"
            self.outcomes[self.running or ("imports", "cpu")] = Outcome("failed", f"{ending} {where}")

    def kill(self) -> None:
        """End it and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def judge(checked: Check, first: Outcome | None, second: Outcome | None, *, processors: int) -> Outcome:
    """Return the one outcome of a check from what two interpreters saw; None is one that never got to it.

    The battery's control must see nondeterminism where there are two processors, and so something to race:
    else this test has not shown that it could see any, and a pass of the others would mean little.
    """
    if first is None or second is None:
        other = first or second
        return (
            other if other and other.status == "failed" else Outcome("not-run", "a process had ended before")
        )
    for outcome in (first, second):
        if outcome.status == "failed":
            return outcome
    if first.status != second.status:
        if checked.compares == (CONTROL,):  # seen by one of the two is seen
            return first if first.status == "passed" else second
        return Outcome("failed", f"{first.status} in one process, {second.status} in the other")
    if first.status == "inconclusive" and checked.part == "battery" and processors > 1:
        return Outcome("failed", f"{first.reason}, so this test cannot see any here")
    outcome = Outcome(first.status, first.reason, results=first.results, values=first.values)
    outcome.notes = first.notes
    outcome.calls = first.calls + second.calls
    outcome.seconds = max(first.seconds, second.seconds)
    if ACROSS in checked.compares and first.results != second.results:
        names = list({**first.results, **second.results})
        pairs = [(name, first.results.get(name, "none"), second.results.get(name, "none")) for name in names]
        outcome.status, outcome.reason = "failed", "two processes differ"
        outcome.detail = [{"what": name, "expected": a, "got": b} for name, a, b in pairs if a != b]
    return outcome


def report_of(
    names: Sequence[str],
    device: str,
    limit: float,
    mode: str = "battery",
    *,
    part: bool = False,
    left_out: Sequence[str] = (),
) -> dict[str, Any]:
    """Run the checks in two interpreters and return the report.

    ``mode``: "battery", "full" or "prove"; ``part``: these are not all of its checks, and the report says so.
    ``left_out`` are named in the report as not run.
    """
    start = time.monotonic()
    pair: list[Interpreter] = []
    try:
        for number in range(2):
            own = [name for name in names if not (number and CHECKS[name].once)]
            pair.append(Interpreter(own, device, mode))
        for interpreter in pair:
            interpreter.finish(start + limit)
    finally:
        for interpreter in pair:
            interpreter.kill()
    known = {**pair[1].facts, **pair[0].facts}
    gpu = known.get("gpu", {"tested": False, "reason": "no process got far enough to look for one"})
    checks = []
    for name in names:
        for where in CHECKS[name].devices:
            if where == "cuda" and not gpu["tested"] and device != "cuda":
                continue
            saw = [pair[0]] * 2 if CHECKS[name].once else pair
            seen = (interpreter.outcomes.get((name, where)) for interpreter in saw)
            outcome = judge(CHECKS[name], *seen, processors=len(os.sched_getaffinity(0)))
            checks.append(entry(CHECKS[name], where, outcome))
    for checked in (CHECKS[name] for name in left_out):
        where = checked.devices[0]
        if where == "cuda" and not gpu["tested"]:
            continue
        missing = checked.missing(where) if checked.missing else ""
        reason = missing or "it takes longer: --full"
        checks.append(entry(checked, where, Outcome("not-run", reason)))
    if device == "cuda" and not gpu["tested"]:
        lacking = Check(
            "gpu", "A GPU is visible, as --device cuda requires", (SETTING,), ("cuda",), CHECKS["imports"].run
        )
        checks.append(entry(lacking, "cuda", Outcome("failed", gpu["reason"])))
    statuses = {line["status"] for line in checks}
    unsure = mode == "prove" and "inconclusive" in statuses
    return {
        "schema": SCHEMA,
        "program": program_hash(),
        "mode": "part" if part and mode != "prove" else mode,
        "verdict": "failed" if "failed" in statuses else "inconclusive" if unsure else "passed",
        "versions": known.get("versions", {}),
        "scope": known.get("scope", {}),
        "gpu": gpu,
        "checks": checks,
        "seconds": round(time.monotonic() - start, 3),
        "peak_memory_bytes": max(interpreter.facts.get("peak_memory_bytes", 0) for interpreter in pair),
    }


def entry(checked: Check, device: str, outcome: Outcome) -> dict[str, Any]:
    """Return a check's place in the report."""
    whole = json.dumps(outcome.results, sort_keys=True).encode()
    return {
        "name": checked.name,
        "proves": checked.proves,
        "compares": list(checked.compares),
        "device": device,
        **asdict(outcome),
        "rate": round(rate_for(outcome.calls), 4) if outcome.calls else None,
        "scope": "any" if checked.anywhere and device == "cpu" else "kind",
        "fingerprint": hashlib.sha256(whole).hexdigest() if outcome.results else None,
    }


# --- text -------------------------------------------------------------------------------------------------
# Reports as lines for a person.

def cost_text(report: Mapping[str, Any]) -> str:
    """Return the report of ``--cost`` as lines for a person."""
    lines = [f"{'device':6} {'operation':22} {'on':>10} {'off':>10} {'on/off':>7}"]
    for line in report["costs"]:
        start = f"{line['device']:6} {line['name']:22} "
        if line["reason"]:
            lines.append(start + line["reason"])
        else:
            times = f"{line['on'] * 1e3:7.3f} ms {line['off'] * 1e3:7.3f} ms"
            lines.append(f"{start}{times} {line['ratio']:7.2f}")
    if not report["gpu"]["tested"]:
        lines.append(f"GPU not measured: {report['gpu']['reason']}")
    return "\n".join([*lines, ""])


def text_of(report: Mapping[str, Any]) -> str:
    """Return the report as lines for a person."""
    lines = []
    for line in report["checks"]:
        lines.append(
            f"{line['status']:12} {line['device']:5} {line['name']:24} {line['reason'] or line['proves']}"
        )
        lines += [f"{'':19}{d['what']}: expected {d['expected']}, got {d['got']}" for d in line["detail"]]
        lines += [f"{'':19}{text}" for text in line["notes"]]
    if not report["gpu"]["tested"]:
        lines.append(f"GPU not tested: {report['gpu']['reason']}")
    return "\n".join([*lines, f"{report['verdict']} in {report['seconds']} s", ""])


# --- command_line -----------------------------------------------------------------------------------------

def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="write the report as JSON")
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="cuda: fail without a GPU"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--full", action="store_true", help="also what takes longer")
    mode.add_argument("--prove", action="store_true", help="the controls: see nondeterminism come and go")
    mode.add_argument("--cost", action="store_true", help="what determinism costs")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=CHECKS,
        help="run these checks only",
    )
    parser.add_argument("--list", action="store_true", help="list the checks and end")
    parser.add_argument("--time-limit", type=float, default=240.0, metavar="SECONDS", help="default: 240")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    kind = "prove" if options.prove else "full" if options.full else "battery"
    if options.list:
        listed = [c for c in in_order() if options.only is None or c.name in options.only]
        sys.stdout.writelines(
            f"{c.name:24} {c.part:8} {','.join(c.devices):9} {'+'.join(c.compares):21} {c.proves}\n"
            for c in listed
        )
        return 0
    parts = {"battery": {"battery"}, "full": {"battery", "full"}, "prove": {"prove"}}[kind]
    names = [c.name for c in in_order() if (c.name in options.only if options.only else c.part in parts)]
    names = ["imports", *(name for name in names if name != "imports")]
    if options.child is not None:
        with os.fdopen(options.child, "w", encoding="utf-8") as report:
            REPEATED.set_for("full" if options.full else "battery")
            child(report, names, options.device)
        return 0
    if options.cost:
        try:
            costs = cost_report(options.device)
        except NotRun as reason:
            sys.stderr.write(f"--device cuda: no GPU was found: {reason}\n")
            return 1
        sys.stdout.write(json.dumps(costs, indent=1) + "\n" if options.json else cost_text(costs))
        return 0
    # Without this, the death of process 1 by SIGTERM would leave the two interpreters behind on a host.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    whole = kind == "battery" and not options.only
    left_out = [c.name for c in in_order() if whole and c.part == "full"]
    part = bool(options.only)
    result = report_of(names, options.device, options.time_limit, kind, part=part, left_out=left_out)
    sys.stdout.write(json.dumps(result, indent=1) + "\n" if options.json else text_of(result))
    sys.stdout.flush()
    return {"passed": 0, "failed": 1, "inconclusive": 3}[result["verdict"]]


if __name__ == "__main__":
    sys.exit(main())
