"""torch.compile."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import sysconfig
import tempfile
from pathlib import Path

from .exact import numbers
from .gradients import filled, module_with_gradients
from .libraries import torch
from .outcomes import NotRun, Results
from .registry import ACROSS, BOTH, WITHIN, check


def toolchain_missing(device: str) -> str:
    """Return what torch.compile lacks here, or nothing."""
    if not any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++"))):
        return "there is no C++ compiler here, which torch.compile needs"
    if device == "cpu" and not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "the headers of Python are not here, which torch.compile needs"
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        return "triton is not installed, which torch.compile needs on a GPU"
    return ""


@check(WITHIN, ACROSS, devices=BOTH, part="full", order=450)
def compiled(device: str) -> Results:
    """torch.compile of a small model repeats in two processes with empty caches, forward and backward."""
    missing = toolchain_missing(device)
    if missing:
        raise NotRun(missing)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            stack.callback(_restore, name, os.environ.get(name))
            os.environ[name] = f"{folder}/{name}"
        torch._dynamo.reset()
        layers = torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 10)
        model = filled(torch.nn.Sequential(*layers), device)
        results = module_with_gradients(torch.compile(model), numbers(32, 64, device=device))
        if not any(Path(folder).rglob("*.*")):
            raise RuntimeError("torch.compile compiled nothing")
        return results


def _restore(name: str, value: str | None) -> None:
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value
