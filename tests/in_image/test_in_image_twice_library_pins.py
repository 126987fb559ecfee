"""What experiments change in libraries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from reprobuild.in_image.twice.library_pins import one_thread_of_duckdb, seed_numba


class Connection:
    """Keeps the statements."""

    def __init__(self, kept: list[str]) -> None:
        self.kept = kept

    def execute(self, statement: str, *_: Any) -> None:
        self.kept.append(statement)

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


def test_compiled_code_is_seeded_and_the_program_s_own_generators_stay() -> None:
    import random

    compiled: list[Any] = []
    before = random.getstate()

    def njit(function: Any) -> Any:
        compiled.append(function)
        return function  # as Numba does with NUMBA_DISABLE_JIT

    numpy = SimpleNamespace(random=SimpleNamespace(seed=lambda _: None, get_state=lambda: 1, set_state=int))
    seed_numba(SimpleNamespace(njit=njit), numpy)
    assert len(compiled) == 1
    assert random.getstate() == before
