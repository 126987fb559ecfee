"""How the GPUs are set up, as NVIDIA's management library says (docs.nvidia.com/deploy/nvml-api).

It comes with the driver. Where it is missing, or does not say, a fact is None: not known.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

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
