"""How much work a call is, counted instead of timed: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any


def work_of(function: Callable[[], object], *modules: ModuleType) -> int:
    """Return how many instructions of some modules a call takes; what is written in C counts as one."""
    count, files = 0, {module.__file__ for module in modules}

    def counted(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return counted

    def trace() -> None:
        before = sys.gettrace()
        sys.settrace(counted)
        try:
            function()
        finally:
            sys.settrace(before)

    trace()
    if (
        count == 0
    ):  # from Python 3.12 on, the first frame that asks for a code object's opcodes gets none of them
        trace()
    return count


SIZE = 40
"""The smaller of the two inputs of `grows_as_its_input`."""


def grows_as_its_input(function: Callable[[int], object], *modules: ModuleType) -> bool:
    """Whether a call for four times as much takes about four times the work, not sixteen times."""
    small, large = (work_of(lambda size=size: function(size), *modules) for size in (SIZE, 4 * SIZE))  # type: ignore[misc]
    assert small > SIZE, "the call has no work in these modules"
    return large < 6 * small
