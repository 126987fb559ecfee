"""Lines of a program that may give another order or value in each run, and that no call of them can show.

Read from the text: a loop over a set, results in the order in which threads end, times of files, the
date. A hint is no finding: it is told beside a value that came from outside.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Container, Iterator
from typing import Any

from . import library_hints, thread_hints
from .places import is_users, text
from .syntax import assigned, called_name, last_name, made_by, owner_of
from .thread_hints import GETS

MOST_BYTES = 1 << 20
MOST_MODULES = 100
_asking: set[tuple[str, int]] = set()
"""Lines that ask a query of which the text's own line was told."""
_SETS = ("set", "frozenset")
_OF_SETS = ("union", "intersection", "difference", "symmetric_difference", "copy")
_CALLS = {
    "as_completed": "the order in which tasks end",
    "imap_unordered": "the order in which tasks end",
    "accept": "the order in which others connect",
    "now": "the date",
    "utcnow": "the date",
    "today": "the date",
    "getmtime": "the time of a file",
    "getctime": "the time of a file",
    "gettempdir": "a temporary name",
    "mkdtemp": "a temporary name",
}
_ATTRIBUTES = {
    **dict.fromkeys(("st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime"), "the time of a file"),
    "st_ino": "the number of a file",
}
UNRECORDED = "what a process does that is not recorded, as it gets variables of its own"
UNSEEDED = "a generator that the system seeds"
TIMER = "a timer that interrupts the program"
TRIALS = "trials that run at once"
BATCHES = "batches in the order in which workers finish"
SET_MADE = "a set of which the order counts"
_SHARED = "what other processes change meanwhile"
_SHARING = ("share_memory", "share_memory_")
_VALUES = ("Value", "RawValue", "Array", "RawArray", "SharedMemory", "ShareableList")
_CONTENTS = ("value", "buf")
TAKEN = "which of several threads takes what"
_OF_QUEUES = {
    **dict.fromkeys(GETS, "what comes first from others that put something in"),
    "put_nowait": "what a full queue does not take",
}
_QUEUES = ("Queue", "SimpleQueue", "JoinableQueue", "LifoQueue")
SEEDED = (
    *("seed", "Random", "default_rng", "RandomState", "SeedSequence"),
    *("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"),
)
_SORTING = ("sorted", "len", "sum", "min", "max", "any", "all", "set", "frozenset")


def write(writer: Any, read: Container[str] = ()) -> None:
    """Write the hints of the program's modules but of those that were read."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    if sys.argv[:1] and sys.argv[0].endswith(".py"):  # Python has taken it from the main module at the end
        files.append(os.path.abspath(sys.argv[0]))  # noqa: PTH100 -- pathlib is slow to import
    own = [each for each in dict.fromkeys(files) if isinstance(each, str) and is_users(each)]
    for path in own[:MOST_MODULES]:
        if path not in read:
            write_of(writer, path)
    for path in library_hints.sql_files():
        write_of(writer, path)
    for place, what in library_hints.of_asked(_asking):
        at = [*place, text(place)]
        writer.write({"k": "hint", "what": what, "place": at, "for": at})


def write_of(writer: Any, path: str) -> None:
    """Write the hints of a file."""
    found, asked = _read(path)
    for line, what in found[:200]:
        at, by = (path, line, ""), asked.get(line, ("", 0, ""))
        shown = text(by) if by[0] else ""
        _asking.add(by[:2])
        writer.write({"k": "hint", "what": what, "place": [*at, text(at)], "for": [*by, shown]})


def of_file(path: str) -> list[tuple[int, str]]:
    """Return the lines with a hint, and what it is; none where the file is no Python that can be read."""
    return _read(path)[0]


def _read(path: str) -> tuple[list[tuple[int, str]], dict[int, tuple[str, int, str]]]:
    """Return the lines with a hint, and by those of queries who asks one, by some others their call."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is slow to import
            data = file.read(MOST_BYTES)
        if path.endswith(".sql"):
            return sorted(set(library_hints.of_query(data.decode()))), {}
        tree = ast.parse(data)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return [], {}
    source = data.decode("utf-8", "replace").splitlines()
    found = sorted({(line, what) for line, what in _found(tree, source) if line})
    calls = library_hints.trained_at(tree, path) if "gensim" in sys.modules else {}
    return found, {**calls, **library_hints.loops_at(tree, path), **library_hints.asked(tree, source)}


def _found(tree: ast.AST, source: list[str]) -> Iterator[tuple[int, str]]:
    named, waited = _of_sets(tree), _waited_for(tree)
    queues, values = made_by(tree, _QUEUES), made_by(tree, _VALUES)
    bounded = made_by(tree, _QUEUES, given=True)
    harmless = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SORTING
        for argument in node.args
    }
    run_by_threads = thread_hints.run_by_threads(tree)
    workers = {id(each) for started in run_by_threads for each in ast.walk(started.function)}
    got = _got_elsewhere(tree, queues, workers)
    for started in run_by_threads:
        yield from thread_hints.of_thread(started, queues, got)
    yield from thread_hints.under_locks(tree)
    yield from thread_hints.raced(tree, run_by_threads)
    yield from thread_hints.tasks(tree)
    yield from library_hints.found(tree, source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)) and _is_set(node.iter, named):
            yield from _order_of(node.iter, node.iter.lineno, named)
        elif isinstance(node, (ast.For, ast.comprehension)) and last_name(node.iter) in waited:
            yield node.iter.lineno, "the order of a set of futures"
        elif isinstance(node, ast.Call):
            yield from _of_call(node, named, harmless)
            yield from _of_queue(node, queues, bounded, workers)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and _read_by_name(node) in values:
            yield node.lineno, _SHARED
        elif isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            yield node.lineno, _ATTRIBUTES[node.attr]


def _of_sets(tree: ast.AST) -> dict[str, int]:
    """Return the names that are given a set, attributes with a dot before, each with the first such line."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            pairs = list(assigned(node))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Call) and called_name(node) == "setdefault" and len(node.args) > 1:
            if _is_set(node.args[1], {}):
                found.setdefault(f"[{last_name(owner_of(node))}", node.lineno)
            continue
        else:
            continue
        for target, value in pairs:
            # A field of a dataclass names what makes it.
            factories = [
                word.value for word in getattr(value, "keywords", ()) if word.arg == "default_factory"
            ]
            if _is_set(value, {}) or any(last_name(each) in _SETS for each in factories):
                field = isinstance(target, ast.Attribute) or bool(factories)
                of = f"[{last_name(target.value)}" if isinstance(target, ast.Subscript) else last_name(target)
                found.setdefault(("." if field else "") + of, node.lineno)
            elif any(_is_set(each, {}) for each in _held(value)) or _makes_sets(value):
                found.setdefault(f"[{last_name(target)}", node.lineno)
    return found


def _makes_sets(value: ast.expr) -> bool:
    """Return whether it is a ``defaultdict(set)``."""
    if not isinstance(value, ast.Call) or called_name(value) != "defaultdict":
        return False
    return any(last_name(each) in _SETS for each in value.args[:1])


def _waited_for(tree: ast.AST) -> set[str]:
    """Return the names that take the sets of futures which ``concurrent.futures.wait`` gives."""
    return {
        last_name(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and called_name(node.value) == "wait"
        for target in node.targets
        if isinstance(target, ast.Tuple)
        for each in target.elts
    }


def _held(value: ast.expr) -> list[ast.expr]:
    """Return what a dictionary or list holds as it is made."""
    if isinstance(value, (ast.Dict, ast.DictComp)):
        return value.values if isinstance(value, ast.Dict) else [value.value]
    return (
        value.elts if isinstance(value, ast.List) else [value.elt] if isinstance(value, ast.ListComp) else []
    )


def _order_of(node: ast.AST, line: int, named: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Give the line that takes the order of a set, and the one that makes it."""
    yield line, "the order of a set"
    of = f"[{last_name(node.value)}" if isinstance(node, ast.Subscript) else last_name(node)
    made = named.get(f".{of}" if isinstance(node, ast.Attribute) else of, line)
    if made != line:
        yield made, SET_MADE


def _of_queue(
    node: ast.Call, queues: set[str], bounded: set[str], workers: Container[int]
) -> Iterator[tuple[int, str]]:
    name, owner = called_name(node), last_name(owner_of(node))
    if name in _OF_QUEUES and owner in (bounded if name == "put_nowait" else queues):
        yield node.lineno, TAKEN if name in GETS and id(node) in workers else _OF_QUEUES[name]


def _got_elsewhere(tree: ast.AST, queues: set[str], workers: Container[int]) -> set[str]:
    """Return the queues from which something is taken outside of what threads run: there its order counts."""
    return {
        last_name(owner_of(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called_name(node) in GETS and id(node) not in workers
    } & queues


def _of_call(node: ast.Call, named: dict[str, int], harmless: set[int]) -> Iterator[tuple[int, str]]:
    name = called_name(node)
    if name in _SHARING:
        yield node.lineno, _SHARED
    if name in _CALLS:
        yield node.lineno, _CALLS[name]
    named_values = {each.arg: getattr(each.value, "value", None) for each in node.keywords}
    if named_values.get("in_order") is False:
        yield node.lineno, BATCHES
    if name == "optimize" and named_values.get("n_jobs", 1) not in (0, 1):
        yield node.lineno, TRIALS
    if name == "Parallel" and {"threading", "threads", "sharedmem"} & {*map(str, named_values.values())}:
        yield node.lineno, "threads that share what they work on"
    if name in ("setitimer", "alarm") and node.args and getattr(node.args[-1], "value", 1) != 0:
        yield node.lineno, TIMER
    if name in SEEDED and not node.args and not node.keywords:
        yield node.lineno, UNSEEDED
    if name in ("list", "tuple", "enumerate", "join", "pop") and id(node) not in harmless:
        walked = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        for argument in walked:
            if _is_set(argument, named):
                yield from _order_of(argument, node.lineno, named)


def _read_by_name(node: ast.Attribute | ast.Subscript) -> str | None:
    """Return whose content is read, as in ``counter.value`` and ``array[0]``."""
    if isinstance(node, ast.Subscript) or node.attr in _CONTENTS:
        return last_name(node.value) if isinstance(node.ctx, ast.Load) else None
    return None


def _is_set(node: ast.AST, named: dict[str, int]) -> bool:
    if isinstance(node, ast.Call):
        called, owner = called_name(node), owner_of(node)
        if isinstance(node.func, ast.Name):
            return called in _SETS
        return (
            f"[{last_name(owner)}" in named
            if called == "get"
            else called in _OF_SETS and _is_set(owner, named)
        )
    if isinstance(node, ast.Attribute):
        return f".{node.attr}" in named
    if isinstance(node, ast.Subscript):
        return f"[{last_name(node.value)}" in named
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)):
        return _is_set(node.left, named) or _is_set(node.right, named)
    return isinstance(node, (ast.Set, ast.SetComp)) or (isinstance(node, ast.Name) and node.id in named)
