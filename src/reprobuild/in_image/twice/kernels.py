"""Records, for a trace, each launch of a Triton kernel: torch sees nothing of what it computes.

A launch is an operation like one of torch's, with the line that launches it. Nobody says which of its tensors
a kernel writes: those count that hold something else afterwards. What Inductor makes of compiled code is
launched by a class of its own, and its names begin with ``compiled``.
"""

from __future__ import annotations

import functools
import sys
import threading
from types import FrameType
from typing import Any

from .places import is_users
from .watching import Watcher

_LAUNCHERS = {
    "triton.runtime.jit": ("JITFunction",),
    "triton.runtime.autotuner": ("Autotuner", "Heuristics"),
    "triton.runtime.interpreter": ("InterpretedFunction",),
    "torch._inductor.runtime.triton_heuristics": ("CachingAutotuner",),
}
_trace: list[Any] = []
"""The trace of this process, once torch is there."""
_inside = threading.local()
"""Of a thread: whether a launch is being recorded. An autotuner launches a kernel many times."""


def record_into(trace: Any) -> None:
    """Record launches from now on, while the trace is on."""
    _trace[:] = [trace]


def install(watcher: Watcher) -> None:
    """Watch the launchers as they are imported."""
    for module, names in _LAUNCHERS.items():
        watcher.after(module, functools.partial(_watch, names))


def _watch(names: tuple[str, ...], module: Any) -> None:
    space = "compiled" if module.__name__.startswith("torch.") else "triton"
    for name in names:
        kind = getattr(module, name, None)
        if kind is not None and "run" in vars(kind):
            kind.run = _recorded(kind.run, space)


def _recorded(inner: Any, space: str) -> Any:
    @functools.wraps(inner)
    def run(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if not _trace or getattr(_inside, "launch", False):
            return inner(self, *arguments, **keywords)
        _inside.launch = True
        try:
            given = (arguments, {key: keywords[key] for key in keywords if key not in _SETTINGS})
            return _trace[0].launch(
                f"{space}::{_name(self)}", given, lambda: inner(self, *arguments, **keywords)
            )
        finally:
            _inside.launch = False

    return run


_SETTINGS = ("stream", "warmup", "grid", "benchmark_run")
"""What says where and how to run. The grid is a function as a rule, and is what the arguments make it."""


def _name(launcher: Any) -> str:
    """Return the name of the kernel itself, below autotuners and heuristics."""
    for _ in range(8):
        function = getattr(launcher, "fn", None)
        if function is None:
            break
        launcher = function
    return str(getattr(launcher, "__name__", type(launcher).__name__))[:100]


def in_backward_of_program() -> bool:
    """Whether the program's own backward function is launching, whose line says more than its forward's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users(name):
            return True
        if name.endswith("torch/autograd/function.py"):
            return False
        frame = frame.f_back
    return False
