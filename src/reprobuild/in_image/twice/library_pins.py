"""Experiments with libraries in C: DuckDB's threads, and the generators of code that Numba compiles."""

from __future__ import annotations

import functools
import re
import sys
from typing import Any

_THREADS = re.compile(
    r"\b(?:SET|PRAGMA)\s+(?:GLOBAL\s+|SESSION\s+)?(?:worker_)?threads\s*(?:=|TO)\s*\d+", re.IGNORECASE
)
_ONE = "SET threads = 1"


def one_thread_of_duckdb(module: Any) -> None:
    """Let DuckDB compute in one thread, which gives rows in the same order each time."""
    connect = module.connect

    @functools.wraps(connect)
    def connected(*arguments: Any, **named: Any) -> Any:
        connection = connect(*arguments, **named)
        connection.execute(_ONE)
        return connection

    module.connect = connected
    for owner in (module, module.DuckDBPyConnection):
        for name in ("execute", "sql", "query"):
            inner = getattr(owner, name)
            setattr(owner, name, _without_threads(inner, is_method=owner is not module))
    module.execute(_ONE)


def _without_threads(inner: Any, *, is_method: bool) -> Any:
    @functools.wraps(inner)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        given = list(arguments)
        at = int(is_method)
        if len(given) > at and isinstance(given[at], str):
            given[at] = _THREADS.sub(_ONE, given[at])
        return inner(*given, **named)

    return wrapper


def seed_numba(module: Any, numpy: Any = None) -> None:
    """Seed the generators that compiled code draws from: it has its own, by NumPy's and Python's names."""
    numpy, random = numpy or sys.modules["numpy"], sys.modules["random"]

    def seed(value: int) -> None:
        numpy.random.seed(value)
        random.seed(value)

    states = numpy.random.get_state(), random.getstate()
    module.njit(seed)(0)
    numpy.random.set_state(states[0])
    random.setstate(states[1])
