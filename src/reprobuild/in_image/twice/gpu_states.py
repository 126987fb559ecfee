"""What a GPU says of itself through torch, another value in each run: times, memory, load, temperature."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TIMES = ("elapsed_time",)
STATES = (
    *("mem_get_info", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
    *("device_memory_used", "memory_usage", "utilization", "temperature", "power_draw", "clock_rate"),
)


def watch(watched: Callable[..., Any], torch: Any) -> None:
    """Record, for a trace, what the program asks for."""
    if hasattr(torch.cuda, "Event"):
        watched(torch.cuda.Event, TIMES, "clock", "torch.cuda.Event")
    watched(torch.cuda, STATES, "machine", "torch.cuda")


def measure(measured: Callable[..., Any], torch: Any, faster: Any) -> None:
    """Follow into the program's text what it measures; ``faster``: what makes its times longer."""
    if hasattr(torch.cuda, "Event"):
        measured(torch.cuda.Event, TIMES, faster=faster)
    measured(torch.cuda, STATES)
