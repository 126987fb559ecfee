"""torch.compile."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from .exact import numbers
from .gradients import filled, module_with_gradients
from .libraries import torch
from .outcomes import Results
from .registry import ACROSS, BOTH, WITHIN, check


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
