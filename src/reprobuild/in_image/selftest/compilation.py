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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .exact import numbers
from .gradients import filled, module_with_gradients, with_gradients
from .libraries import torch
from .outcomes import NotRun, Results
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


@contextlib.contextmanager
def compiled_anew() -> Iterator[None]:
    """Let torch.compile find nothing compiled before. Raises RuntimeError where it compiles nothing."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            stack.callback(_restore, name, os.environ.get(name))
            os.environ[name] = f"{folder}/{name}"
        torch._dynamo.reset()
        yield
        if not any(Path(folder).rglob("*.*")):
            raise RuntimeError("torch.compile compiled nothing")


@check(WITHIN, ACROSS, devices=BOTH, part="full", order=450, missing=toolchain_missing)
def compiled(device: str) -> Results:
    """torch.compile of a small model repeats in two processes with empty caches, forward and backward."""
    layers = torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 10)
    model = filled(torch.nn.Sequential(*layers), device)
    with compiled_anew():
        fast: Any = torch.compile(model)
        return module_with_gradients(fast, numbers(32, 64, device=device))


@check(WITHIN, ACROSS, devices=BOTH, part="full", order=451, missing=toolchain_missing)
def flex_attention(device: str) -> Results:
    """FlexAttention, compiled anew, with a mask and a score of its own, repeats; on a GPU with gradients."""
    try:
        flex: Any = importlib.import_module("torch.nn.attention.flex_attention")
    except ImportError:
        raise NotRun("this torch has no FlexAttention: it came with torch 2.5") from None
    heads = [numbers(1, 2, 256, 64, salt=salt, device=device) for salt in (1, 2, 3)]
    mask = flex.create_block_mask(lambda _, __, q, k: q >= k, None, None, 256, 256, device=device)
    slopes = torch.tensor((0.25, 0.5), device=device)

    def sloped(score: Any, _: Any, h: Any, q: Any, k: Any) -> Any:
        return score + slopes[h] * (k - q)

    with compiled_anew():
        fast: Any = torch.compile(flex.flex_attention)

        def attended_by(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = fast(query, key, value, score_mod=sloped, block_mask=mask)
            return result

        if device == "cuda":  # torch has no gradients of it on the CPU
            return with_gradients(attended_by, *heads)
        return {"output": attended_by(*heads)}


def _restore(name: str, value: str | None) -> None:
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value
