"""What the recorder of ``twice`` reads of threads from a program's text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from reprobuild.in_image.twice.hints import of_file
from reprobuild.in_image.twice.thread_hints import CHANGED, FILLED, SHARED_GENERATOR, tasks, under_locks

AGENT = (
    "class Agent:\n    def __init__(self, rng):\n        self.rng = {}\n"
    "    def wake(self):\n        self.rng.random()\n"
)
EACH = "jobs = [pool.submit(agent.wake) for agent in due]\n"


@pytest.mark.parametrize(
    ("made", "started", "is_shared"),
    [
        ("make(self.name)", EACH, False),
        ("rng", EACH, True),  # it may be the same for all
        ("make(self.name)", "for each in agents:\n    Thread(target=each.wake)\n", False),
        ("make(self.name)", "for _ in range(4):\n    Thread(target=agent.wake)\n", True),
        ("make(self.name)", EACH + "pool.submit(first.wake)\n", True),
    ],
)
def test_what_each_object_makes_for_itself_its_threads_do_not_share(
    made: str, started: str, *, is_shared: bool, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(AGENT.format(made) + started)
    assert ((5, SHARED_GENERATOR) in of_file(str(program))) == is_shared


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("with self._lock:\n    self.box.append(x)", [(2, FILLED)]),
        ("with lock:\n    total += x\n    calls += 1", [(2, CHANGED)]),
        ("with open(path):\n    box.append(x)", []),
        ("async with LOCK:\n    rows.extend(x)", [(2, FILLED)]),
    ],
)
def test_what_is_filled_or_added_up_while_a_lock_is_held_has_the_order_of_threads(
    block: str, expected: list[tuple[int, str]]
) -> None:
    body = "".join(f"    {line}\n" for line in block.splitlines())
    found = under_locks(ast.parse(f"async def f():\n{body}"))
    assert [(line - 1, what) for line, what in found] == expected


WRITER = """async def write(self, first{given}):
    for at in range(first, 9):
        {drawn}
        await self.post(row)
async def seed(self):
    {started}
"""


@pytest.mark.parametrize(
    ("drawn", "started", "is_shared"),
    [
        ("row = make(self.rng, at)", "await gather(*[self.write(k) for k in range(8)])", True),
        ("row = self.rng.random()", "tasks = [create_task(self.write(k)) for k in range(8)]", True),
        ("row = make(self.rng, at)", "await self.write(0); await gather(*others)", False),
        ("row = self.rng.random()", "run(self.write(0)); create_task(other)", False),
        ("rng = Random(at); row = make(rng, at)", "await gather(*[self.write(k) for k in range(8)])", False),
        ("row = make(rng, at)", "await gather(*[self.write(k, rng=r) for k, r in enumerate(all)])", False),
    ],
)
def test_tasks_that_run_beside_each_other_and_draw_from_one_generator(
    drawn: str, started: str, *, is_shared: bool
) -> None:
    given = ", *, rng" if "rng=r" in started else ""
    found = tasks(ast.parse(WRITER.format(given=given, drawn=drawn, started=started)))
    assert ((3, SHARED_GENERATOR) in found) == is_shared
