"""What experiments change in libraries."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from reprobuild.in_image.twice.library_pins import (
    one_task_of_asyncio,
    one_thread_of_duckdb,
    one_worker_of_gensim,
    one_writer_of_arrow,
    seed_numba,
    shuffle_by_tasks_of_dask,
    stop_clock_of_duckdb,
    stop_clock_of_sqlite,
)


class Connection:
    """Keeps the statements."""

    def __init__(self, kept: list[str]) -> None:
        self.kept = kept

    def execute(self, statement: str, *_: Any) -> Any:
        self.kept.append(statement)
        return self

    def fetchall(self) -> list[Any]:
        return []

    sql = query = execute


def test_no_statement_of_the_program_sets_another_number_of_threads() -> None:
    kept: list[str] = []
    module: Any = SimpleNamespace(
        connect=lambda _: Connection(kept), DuckDBPyConnection=Connection,
        execute=kept.append, sql=kept.append, query=kept.append,
    )  # fmt: skip
    one_thread_of_duckdb(module)
    connection = module.connect("a.duckdb")
    connection.execute("SET threads = 4; SELECT 1", [])
    connection.sql("pragma THREADS=8")
    module.sql("set global worker_threads to 2")
    connection.execute("SELECT threads = 4 FROM t")
    one = "SET threads = 1"
    assert kept == [one, one, f"{one}; SELECT 1", one, one, "SELECT threads = 4 FROM t"]


def test_a_query_of_duckdb_has_a_fixed_time() -> None:
    kept: list[str] = []
    module: Any = SimpleNamespace(
        DuckDBPyConnection=Connection, execute=kept.append, sql=kept.append, query=kept.append
    )
    stop_clock_of_duckdb(module)
    module.sql("SELECT now() - at, current_timestamp FROM known")
    assert kept == [
        "SELECT TIMESTAMPTZ '2030-01-01 00:00:00+00' - at, TIMESTAMPTZ '2030-01-01 00:00:00+00' FROM known"
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT julianday('now') - julianday('2029-12-31')", 1.0),
        ("SELECT datetime('now', '+1 day')", "2030-01-02 00:00:00"),
        ("SELECT date()", "2030-01-01"),
        ("SELECT strftime('%Y')", "2030"),
        ("SELECT strftime('%Y', '2001-02-03')", "2001"),
        ("SELECT CURRENT_TIMESTAMP", "2030-01-01 00:00:00"),
        ("SELECT abs(-3)", 3),
    ],
)
def test_a_query_of_sqlite_has_a_fixed_time(query: str, expected: object) -> None:
    with contextlib.ExitStack() as stack:

        def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
            made: sqlite3.Connection = sqlite3.connect(*arguments, **named)
            return stack.enter_context(contextlib.closing(made))

        module: Any = SimpleNamespace(connect=connect, dbapi2=SimpleNamespace())
        stop_clock_of_sqlite(module)
        assert module.connect(":memory:").execute(query).fetchone() == (expected,)


def test_compiled_code_is_seeded_and_the_program_s_own_generators_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import random

    compiled: list[Any] = []
    before = random.getstate()

    def njit(function: Any) -> Any:
        compiled.append(function)
        return function  # as Numba does with NUMBA_DISABLE_JIT

    numpy = SimpleNamespace(random=SimpleNamespace(seed=lambda _: None, get_state=lambda: 1, set_state=int))
    monkeypatch.setitem(sys.modules, "numpy", cast("ModuleType", numpy))
    seed_numba(SimpleNamespace(njit=njit))
    assert len(compiled) == 1
    assert random.getstate() == before


def test_tasks_that_one_makes_run_one_after_the_other_and_may_make_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asyncio.BaseEventLoop, "create_task", asyncio.BaseEventLoop.create_task)
    told: list[str] = []

    async def inner(name: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        told.append(name)
        return name

    async def task(number: int) -> list[str]:
        pair = ((f"{number} later", 0.02), (f"{number} sooner", 0.01))
        return list(await asyncio.gather(*(inner(name, seconds / number) for name, seconds in pair)))

    async def main() -> list[list[str]]:
        waits = asyncio.create_task(task(1), name="first")
        assert waits.get_name() == "first"
        return [*await asyncio.gather(waits, *map(task, (2, 3)))]

    in_turn = [f"{number} {name}" for number in (1, 2, 3) for name in ("sooner", "later")]
    asyncio.run(main())
    assert told != in_turn
    told.clear()
    one_task_of_asyncio(asyncio.base_events)
    for _ in range(2):  # each loop has its own turn
        told.clear()
        assert asyncio.run(main()) == [[f"{n} later", f"{n} sooner"] for n in (1, 2, 3)]
        assert told == in_turn


def test_tasks_of_the_only_task_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.BaseEventLoop, "create_task", asyncio.BaseEventLoop.create_task)
    told: list[int] = []

    async def task(number: int) -> None:
        await asyncio.sleep(0.01 / number)
        told.append(number)

    async def program() -> None:
        await asyncio.gather(*map(task, (1, 2, 3)))

    async def main() -> None:  # in a task of its own, as `asyncio.wait_for` before Python 3.12
        await asyncio.ensure_future(program())

    asyncio.run(main())
    assert told == [3, 2, 1]
    one_task_of_asyncio(asyncio.base_events)
    asyncio.run(main())
    assert told[3:] == [1, 2, 3]


def test_a_task_does_not_wait_for_one_that_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.BaseEventLoop, "create_task", asyncio.BaseEventLoop.create_task)
    monkeypatch.setattr("reprobuild.in_image.twice.library_pins._MOMENTS", 0.01)
    one_task_of_asyncio(asyncio.base_events)

    async def main() -> list[bool | None]:
        set_by_second = asyncio.Event()

        async def second() -> None:
            set_by_second.set()

        this = asyncio.current_task()
        assert this is not None
        asyncio.get_running_loop().call_later(10, this.cancel)
        return [*await asyncio.gather(set_by_second.wait(), second())]

    assert asyncio.run(main()) == [True, None]


def test_dask_moves_rows_by_tasks() -> None:
    chosen: dict[str, str] = {}
    shuffle_by_tasks_of_dask(SimpleNamespace(set=chosen.update))
    assert chosen["dataframe.shuffle.method"] == "tasks"


def test_arrow_writes_in_one_thread() -> None:
    module = SimpleNamespace(write_dataset=lambda *_, **named: named)
    one_writer_of_arrow(module)
    assert module.write_dataset([], "a", format="parquet") == {"format": "parquet", "use_threads": False}


def test_gensim_trains_each_model_in_one_thread() -> None:
    class Word2Vec:
        def __init__(self, texts: object = None, *, workers: int = 3) -> None:
            self.texts, self.workers = texts, workers

    class Doc2Vec(Word2Vec):
        def __init__(self, *, workers: int) -> None:
            super().__init__("of paragraphs", workers=workers)

    one_worker_of_gensim(SimpleNamespace(Word2Vec=Word2Vec))
    made = [Word2Vec(), Word2Vec("a", workers=8), Doc2Vec(workers=8)]
    assert [(each.texts, each.workers) for each in made] == [(None, 1), ("a", 1), ("of paragraphs", 1)]
