"""What more processors would bring: the steps of a cold build, measured here, scheduled on 2, 4, 8 and 16.

The steps are those of the CUDA 12.1 image with all files there. Each costs the processor time that it took,
so that two on one processor do not count twice. A step runs on one processor; the interpreter's bytecode,
which has a process for each, is cut into as many. The self-test's two processes run at the end, beside each
other. Reading and writing are as fast as here, however many do it at once, so these are the least times.
"""

from __future__ import annotations

import heapq
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reprobuild.layers import builder
from reprobuild.layers.schedule import Schedule
from support.building import no_context
from support.measuring import Printer
from support.stack import NAME, Stack

pytest_plugins = ["support.shared"]

PROCESSORS = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Step:
    """Some work: the seconds of one processor that it takes, and the steps it waits for."""

    seconds: float
    after: frozenset[str] = field(default_factory=frozenset)
    divides: bool = False
    """Whether as many processors as there are share it."""


def simulated(steps: Mapping[str, Step], processors: int) -> float:
    """Return the seconds until all steps are done, the one with the longest way to the end first."""
    cut: dict[str, Step] = {}
    for name, step in steps.items():
        if not step.divides:
            cut[name] = step
            continue
        parts = {f"{name}.{n}": replace(step, seconds=step.seconds / processors) for n in range(processors)}
        cut |= parts
        cut[name] = Step(0.0, frozenset(parts))
    ways: dict[str, float] = {}

    def way(name: str) -> float:
        if name not in ways:
            ways[name] = cut[name].seconds + max(
                (way(other) for other, step in cut.items() if name in step.after), default=0.0
            )
        return ways[name]

    now, free, done = 0.0, processors, set[str]()
    waiting, running = set(cut), list[tuple[float, str]]()
    while waiting or running:
        ready = sorted(
            (name for name in waiting if cut[name].after <= done), key=lambda name: (-way(name), name)
        )
        for name in ready[:free]:
            waiting.remove(name)
            free -= 1
            heapq.heappush(running, (now + cut[name].seconds, name))
        now, name = heapq.heappop(running)
        free += 1
        done.add(name)
    return now


class _Measured(Schedule):
    """A schedule that notes what each of its steps costs and waits for."""

    steps: dict[str, Step]

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        type(self).steps = {}
        self._next, self._batch = ("", frozenset[str]()), list[int]()

    def _begin(self, number: int) -> None:
        self._next = (f"large {number}", frozenset())
        super()._begin(number)

    def _add_small(self, number: int) -> None:
        self._next = (f"small {number}", frozenset({f"large {number}"}))
        super()._add_small(number)

    def _close(self, number: int, stage: Any) -> None:
        before = f"small {number}" if stage is None else f"bytecode {self._batches}"
        self._next = (f"close {number}", frozenset({before}))
        super()._close(number, stage)

    def _compile(self) -> None:
        batch = [f"small {n}" for n, draft in self._open.items() if draft.step == "written"]
        self._next = (f"bytecode {self._batches + 1}", frozenset({"Debian", *batch}))
        super()._compile()

    def _submit(
        self, pool: ThreadPoolExecutor, work: Callable[[], Any], then: Callable[[Any], object]
    ) -> None:
        name, after = ("Debian", frozenset[str]()) if work == self._make_system else self._next

        def measured() -> Any:
            own, below = time.thread_time(), sum(os.times()[2:4])
            done = work()
            seconds = time.thread_time() - own
            alone = name == "Debian" or name.startswith(
                "bytecode"
            )  # these two start processes, never at once
            seconds += sum(os.times()[2:4]) - below if alone else 0.0
            with _NOTING:
                self.steps[name] = Step(seconds, after, divides=name.startswith("bytecode"))
            return done

        super()._submit(pool, measured, then)


_NOTING = threading.Lock()


def test_more_processors(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    say = Printer(capsys, "the schedule of a cold build, simulated")
    monkeypatch.setattr(builder, "Schedule", _Measured)
    begin = time.perf_counter()
    stack.engine.build(stack.lock, no_context)
    measured = time.perf_counter() - begin
    steps = dict(_Measured.steps)
    monkeypatch.undo()
    stack.image()
    tested = json.loads(stack.run("selftest", NAME, "--gpu", "off", "--json").stdout)["seconds"]
    layers = frozenset(steps)
    for process in ("self-test 1", "self-test 2"):
        steps[process] = Step(tested, layers)
    say(f"  {sum(step.seconds for step in steps.values()):6.1f} s  of one processor in {len(steps)} steps")
    kinds = sorted({name.partition(" ")[0] for name in steps})
    for kind in kinds:
        own = [step.seconds for name, step in steps.items() if name.startswith(kind)]
        say(f"  {sum(own):6.1f} s  {kind}, {len(own)} of them, the longest {max(own):.1f} s")
    for processors in PROCESSORS:
        say(f"  {simulated(steps, processors):6.1f} s  on {processors} processors, simulated")
    here = len(os.sched_getaffinity(0))
    say(f"  {measured + tested:6.1f} s  measured, on {here}; fetching is in neither")
