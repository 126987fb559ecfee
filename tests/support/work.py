"""How much work a call is, counted instead of timed: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def work_of(function: Callable[[], object]) -> int:
    """Return how many instructions of Python a call takes; what is written in C counts as one."""
    count = 0

    def counted(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


SIZE = 40
"""The smaller of the two inputs of `grows_as_its_input`."""


def grows_as_its_input(function: Callable[[int], object]) -> bool:
    """Whether a call for four times as much takes about four times the work, not sixteen times."""
    return work_of(lambda: function(4 * SIZE)) < 6 * work_of(lambda: function(SIZE))
