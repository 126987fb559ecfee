"""Times the steps and does nothing else: the run without the recorder, which says what that costs.

A step ends where the recorder's own record of it does, so the two are timed by equal means.
"""

from __future__ import annotations

import time
from typing import Any

from .writing import Writer, shared

MOST_RECORDS = 200_000


def install(torch: Any) -> None:  # noqa: ARG001 -- as of the recorder
    """Register the one hook, once torch is imported."""
    from torch.optim import optimizer as optimizers  # noqa: PLC0415 -- there only now

    times = Times(shared())
    optimizers.register_optimizer_step_post_hook(lambda optimizer, *_: times.stepped(optimizer))


class Times:
    """Writes a record of each step with nothing in it but its time."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._steps = 0
        self._last = time.perf_counter()

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        if self._steps >= MOST_RECORDS:
            return
        now = time.perf_counter()
        self._writer.write(
            {
                "k": "step",
                "n": self._steps,
                "optimizer": type(optimizer).__name__[:200],
                "which": 0,
                "parts": [],
                "loss": "",
                "sample": "",
                "wall": round(now - self._last, 6),
                "spent": 0.0,
            }
        )
        self._steps += 1
        self._last = now
