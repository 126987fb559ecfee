"""The whole way of the CUDA 12.1 image from lock to name, with nothing here before: the fetch included."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict

import pytest

from support.measuring import Printer
from support.stack import Stack

pytest_plugins = ["support.shared"]


def test_from_lock_to_name(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """Three times, from the index that is set up. Goals: 40 s on two processors that do nothing else, 500 MB.

    The memory is that of each step, with all that it runs; what several share counts for each.
    """
    say = Printer(capsys, "`reprobuild image`, nothing here, fetch included")
    processors = len(os.sched_getaffinity(0))
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(3):
        shutil.rmtree(stack.home.root)
        before = os.times()
        done = stack.image()
        after = os.times()
        used = sum(after[2:4]) - sum(before[2:4])
        times["wall"].append(done.seconds)
        times["all processors"].append(used)
        for phase in done.phases:
            say(
                f"  {phase.seconds:6.2f} s  {phase.own / 1e6:5.0f} MB itself  {phase.tree / 1e6:5.0f} MB "
                f"with all it runs  {phase.title}"
            )
        say(
            f"  {100 - 100 * used / (done.seconds * processors):.0f} % of the processors' time not used by it"
        )
    say.series(times)
