"""Lines at which DuckDB's queries have no order, and compiled code draws."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest

from reprobuild.in_image.twice.hints import of_file
from reprobuild.in_image.twice.library_hints import (
    COMPILED_DRAW,
    NUMBERED,
    ORDERLESS,
    SHARED,
    SHUFFLED,
    SQL_CLOCK,
    TIED,
    TRAINED,
    WRITTEN,
    found,
    loops_at,
    of_asked,
    of_query,
    trained_at,
)
from reprobuild.twice import known_causes


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("con.sql('select a, sum(b) from t group by a')", [1]),
        ("con.sql('''\nSELECT a, sum(b)\nFROM t\nGROUP BY a\n''')", [4]),
        ("con.sql('select a, sum(b) from t group by a order by a')", []),
        ("con.sql('select distinct a from t')", [1]),
        ("con.sql('select last(price) from t')", [1]),
        ("con.sql('select a from t')", []),
        ("print('grouped: GROUP BY a')", []),
        ("tape.aggregate('symbol, last(price)', 'symbol')", [1]),
    ],
)
def test_a_query_without_order_is_a_hint_where_duckdb_may_get_it(
    program: str, lines: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(found(ast.parse(program), program.split("\n"))) == []
    monkeypatch.setitem(sys.modules, "duckdb", ModuleType("duckdb"))
    assert list(found(ast.parse(program), program.split("\n"))) == [(line, ORDERLESS) for line in lines]


def test_a_number_of_a_row_without_order_is_a_hint_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", ModuleType("duckdb"))
    lines = [
        "QUERY = (",
        '    "create table place as "',
        '    "select row_number() over () as id, zip from t"',
        ")",
    ]
    assert list(found(ast.parse("\n".join(lines)), lines)) == [(3, NUMBERED)]
    for clause, expected in (
        ("OVER (PARTITION BY zip)", [(3, NUMBERED)]),
        ("OVER (PARTITION BY zip ORDER BY day)", [(2, TIED)]),
        ("over (order by zip)", [(2, TIED)]),
    ):
        lines = ['con.sql("""', "SELECT row_number()", f"{clause} FROM t", '""")']
        assert list(found(ast.parse("\n".join(lines)), lines)) == expected
    assert NUMBERED == known_causes.NUMBERED
    assert known_causes.of_hint(NUMBERED) is known_causes.QUERY


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("SELECT DISTINCT ON (who) who, what FROM t ORDER BY who, day", True),
        ("SELECT arg_max(what, day) FROM t", True),
        ("SELECT list(what ORDER BY day) FROM t", True),
        ("SELECT what FROM t ORDER BY day LIMIT 10", True),
        ("SELECT lag(what) OVER (ORDER BY day) FROM t", True),
        ("SELECT max(day) FROM t ORDER BY 1", False),
        ("SELECT rank() OVER (ORDER BY day) FROM t", False),
    ],
)
def test_what_an_order_may_leave_open_is_a_hint(
    query: str, *, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", ModuleType("duckdb"))
    assert (TIED in {what for _, what in of_query(query)}) is counts
    assert known_causes.of_hint(TIED) is known_causes.TIES


@pytest.mark.parametrize(
    ("queries", "lines"),
    [
        (["SELECT a FROM t LIMIT 5"], []),
        (["SELECT a FROM t LIMIT 5", "SET preserve_insertion_order = false"], [2]),
        (["SELECT a FROM t ORDER BY a", "SET preserve_insertion_order TO 'false'"], []),
        (["SELECT a FROM t JOIN u USING (a)", "SELECT a FROM t UNION ALL SELECT a FROM u"], [2]),
        (["SELECT a FROM t", "SELECT a FROM t UNION SELECT a FROM u"], [3]),
    ],
)
def test_a_query_that_was_put_together_is_known_by_the_line_that_asks_it(
    queries: list[str], lines: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", ModuleType("duckdb"))
    places = {query: ("train.py", at, "main") for at, query in enumerate(queries, 2)}
    monkeypatch.setattr("reprobuild.in_image.twice.queries._asked", places)
    assert list(of_asked(())) == [(("train.py", line, "main"), ORDERLESS) for line in lines]
    assert list(of_asked({("train.py", line) for line in lines})) == []


def test_of_several_statements_each_has_an_order_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", ModuleType("duckdb"))
    query = "SELECT a FROM t ORDER BY a;\nSELECT DISTINCT a FROM t;"
    assert list(of_query(query)) == [(2, ORDERLESS)]


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("grid[at[k]] += w[k]", False),  # by its own number, which may lead to places that others have, too
        ("grid[i, j] += w[k]", True),
        ("total[0] = k", True),
        ("c, d = nearest(w[k]); total[c] += d", True),
        ("out[k] = w[k]", False),
        ("own = np.zeros(3)\n        own[0] += 1", False),
        ("total += w[k]", False),  # of which Numba makes a sum
    ],
)
def test_a_loop_of_threads_that_changes_what_is_shared_is_a_hint(line: str, *, counts: bool) -> None:
    program = f"@njit(parallel=True)\ndef f(w):\n    for k in prange(len(w)):\n        {line}\n"
    assert list(found(ast.parse(program), program.split("\n"))) == [(4, SHARED)] * counts
    assert loops_at(ast.parse(program), "a.py") == ({4: ("a.py", 3, "")} if counts else {})
    plain = program.replace("prange", "range")
    assert list(found(ast.parse(plain), plain.split("\n"))) == []
    assert known_causes.of_hint(SHARED) is known_causes.THREADS


def test_a_file_of_sql_has_lines_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "features.sql"
    path.write_text("-- features\nSELECT a, julianday('now') - day\nFROM t\nGROUP BY a\n")
    monkeypatch.delitem(sys.modules, "duckdb", raising=False)
    monkeypatch.setitem(sys.modules, "sqlite3", ModuleType("sqlite3"))
    assert of_file(str(path)) == [(2, SQL_CLOCK)]
    monkeypatch.setitem(sys.modules, "duckdb", ModuleType("duckdb"))
    assert of_file(str(path)) == [(2, SQL_CLOCK), (4, ORDERLESS)]


@pytest.mark.parametrize(
    ("decorator", "line", "counts"),
    [
        ("@njit", "u = np.random.random()", True),
        ("@numba.njit(cache=True)", "u = random.random()", True),
        ("@njit", "np.random.seed(3)", False),
        ("@njit", "u = rng.random()", False),
        ("@cache", "u = np.random.random()", False),
    ],
)
def test_a_draw_of_compiled_code_is_a_hint(decorator: str, line: str, *, counts: bool) -> None:
    program = f"{decorator}\ndef f():\n    {line}\n"
    assert list(found(ast.parse(program), program.split("\n"))) == [(3, COMPILED_DRAW)] * counts


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("Word2Vec(\n    texts,\n    workers=4)", [3]),
        ("settings = dict(workers=4)\nDoc2Vec(texts, **settings)", [1]),
        ("FastText(texts, seed=1)", [1]),  # which trains in three
        ("Word2Vec(texts, workers=1)", []),
        ("train(texts, seed=1)", []),
    ],
)
def test_gensim_trains_in_several_threads_where_it_is_not_told_one(
    program: str, lines: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "gensim", raising=False)
    assert list(found(ast.parse(program), program.split("\n"))) == []
    monkeypatch.setitem(sys.modules, "gensim", ModuleType("gensim"))
    assert list(found(ast.parse(program), program.split("\n"))) == [(line, TRAINED) for line in lines]
    assert trained_at(ast.parse(program), "a.py") == {line: ("a.py", 1, "") for line in lines if line > 1}
    remedy = known_causes.of_hint(TRAINED)
    assert remedy is not None
    assert remedy.remedy == "workers=1"


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("x = frame.groupby('a').apply(f, meta=m).compute()", [1]),
        ("x = (\n    frame.groupby('a')\n    .apply(f)\n    .persist()\n)", [4]),
        ("x, y = dask.compute(a, b)", [1]),
        ("frame.groupby('a').apply(f)", []),
    ],
)
def test_dask_may_have_moved_rows_where_it_computes(
    program: str, lines: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "partd", raising=False)
    assert list(found(ast.parse(program), program.split("\n"))) == []
    monkeypatch.setitem(sys.modules, "partd", ModuleType("partd"))
    assert list(found(ast.parse(program), program.split("\n"))) == [(line, SHUFFLED) for line in lines]
    assert known_causes.of_hint(SHUFFLED) is known_causes.SHUFFLED


@pytest.mark.parametrize(
    ("program", "is_told"),
    [
        ("ds.write_dataset(batches, target, format='parquet')", True),
        ("pq.write_to_dataset(table, root)", True),
        ("frame.to_parquet(path, partition_cols=['day'])", True),
        ("frame.to_parquet(path)", False),  # one file, in order
        ("ds.write_dataset(batches, target, use_threads=False)", False),
        ("ds.write_dataset(batches, target, preserve_order=True)", False),
    ],
)
def test_threads_of_arrow_write_rows_in_any_order(
    program: str, *, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pyarrow.dataset", raising=False)
    assert list(found(ast.parse(program), [program])) == []
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", ModuleType("pyarrow.dataset"))
    assert list(found(ast.parse(program), [program])) == ([(1, WRITTEN)] if is_told else [])
    assert known_causes.of_hint(WRITTEN) is known_causes.WRITTEN
    monkeypatch.setitem(sys.modules, "gensim", ModuleType("gensim"))  # another library hides none of it
    assert list(found(ast.parse(program), [program])) == ([(1, WRITTEN)] if is_told else [])
