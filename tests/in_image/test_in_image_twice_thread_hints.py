"""What the recorder of ``twice`` reads of threads from a program's text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from reprobuild.in_image.twice.hints import of_file
from reprobuild.in_image.twice.thread_hints import (
    CHANGED,
    COUNTED,
    FILLED,
    RACED,
    SHARED_GENERATOR,
    tasks,
    under_locks,
)
from reprobuild.twice import known_causes

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
        ("with self.lock:\n    self.rows[key] = x", []),
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


COUNTS = """class Index:
    def add(self, key):
        {line}
    def take(self, doc):
        for each in doc:
            self.add(each)
def work():
    while jobs:
        index.take(jobs.get())
Thread(target=work)
"""


@pytest.mark.parametrize(
    ("line", "is_raced"),
    [
        ("self.counts[key] = self.counts.get(key, 0) + 1", True),
        ("self.total += weight(key)", True),
        ("self.total = self.total * decay(key)", True),
        ("self.calls += 1", False),  # between whose reading and writing Python lets no other thread run
        ("self.counts[key] = weight(key)", False),
        ("with self.lock: self.total += weight(key)", False),
        ("total = total + weight(key)", False),
    ],
)
def test_what_a_function_that_threads_call_reads_and_then_changes(
    line: str, *, is_raced: bool, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(COUNTS.format(line=line))
    assert ((3, RACED) in of_file(str(program))) is is_raced
    assert known_causes.of_hint(RACED) is known_causes.RACE
    assert RACED == known_causes.RACED


WORKER = "def work(table, counts, n):\n{}\n\nmemory = {}\nProcess(target=work, args=(memory, n))\n"


@pytest.mark.parametrize(
    ("lines", "memory", "is_raced"),
    [
        ("    counts[:] = counts + n", "RawArray('i', 9)", True),
        ("    c = np.frombuffer(table)\n    c[n] += 1", "mp.Array('i', 9)", True),
        ("    c = table.counts\n    c[n] = c[n] + 1", "SharedMemory(size=9)", True),
        ("    table.value += 1", "Value('i', 0)", True),
        ("    with table.get_lock():\n        table.value += 1", "Value('i', 0)", False),
        ("    table.value += 1", "Holder(0)", False),
        ("    counts[n] = 5", "RawArray('i', 9)", False),
        ("    c = {}\n    c[n] += 1", "RawArray('i', 9)", False),
        ("    n += 1", "RawArray('i', 9)", False),
    ],
)
def test_processes_that_change_memory_which_they_share(
    lines: str, memory: str, *, is_raced: bool, tmp_path: Path
) -> None:
    program = tmp_path / "a.py"
    program.write_text(WORKER.format(lines, memory))
    last = lines.count("\n") + 2
    assert ((last, RACED) in of_file(str(program))) is is_raced


def test_threads_that_take_numbers_from_one_counter(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COUNTS.format(line="rows[next(self.numbers)] = key; rows.append(next(own))"))
    assert (3, COUNTED) in of_file(str(program))
    program.write_text(COUNTS.format(line="rows[next(own)] = key"))
    assert COUNTED not in {what for _, what in of_file(str(program))}
    assert (known_causes.COUNTED, known_causes.of_hint(COUNTED)) == (COUNTED, known_causes.COUNTER)


def test_what_each_thread_counts_for_itself_is_not_raced(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    text = (
        "class Worker(Thread):\n    def __init__(self):\n        self.total = Counter()\n"
        "    def run(self):\n        self.total += weigh(self)\n"
    )
    program.write_text(text)
    assert RACED not in {what for _, what in of_file(str(program))}
    program.write_text(text.replace("self.total = Counter()", "self.total = total"))
    assert (5, RACED) in of_file(str(program))
