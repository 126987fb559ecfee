"""What each statement of a source reads and writes, by names and attributes of names, from its text."""

from __future__ import annotations

import ast

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from collections.abc import Iterator

    Path = tuple[str, ...]
    """A name and the attributes that follow it: ``self.model`` is ``("self", "model")``."""

MOST_ATTRIBUTES = 2
"""Attributes of a name that are followed."""
MOST_PATHS = 24
"""Of one statement."""
_MAKERS = ("dict", "list", "set", "sorted", "tuple")
_DISPLAYS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp, ast.Tuple)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Statement:
    """One statement; of a compound one only its first lines, up to its body."""

    __slots__ = ("branches", "end", "inside", "line", "lines", "makes", "reads", "writes")

    def __init__(self, node: ast.stmt, end: int) -> None:
        self.line, self.end = node.lineno, end
        self.reads: list[Path] = []
        self.writes: list[Path] = []
        self.lines: dict[Path, int] = {}
        """Where each stands first."""
        self.branches = isinstance(node, (ast.If, ast.While, ast.For, ast.AsyncFor, ast.Try, ast.With))
        """Whether what it sees decides what runs next."""
        self.makes = _makes(node)
        """Whether what it gives a name, or returns, is a list or the like of its own making."""
        self.inside: list[tuple[int, int | str]] = _inside(node)
        """Of a value that is written out over several lines, the line of each part, and its index or name."""

    @property
    def paths(self) -> list[Path]:
        """Return what it reads or writes, each once, what it writes first."""
        return list(dict.fromkeys([*self.writes, *self.reads]))


def statements(source: str) -> dict[int, Statement]:
    """Return the statements of a source by each line that they stand on. Raises SyntaxError or ValueError."""
    found: dict[int, Statement] = {}
    for node in _nodes(ast.parse(source)):
        body = getattr(node, "body", None)
        bodies = [body[0].lineno] if isinstance(body, list) and body else []
        # A decorator stands above the line of its definition.
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        end = (max(first, bodies[0] - 1) if bodies else node.end_lineno) or first
        if first in found:  # several on one line count as one
            statement = found[first]
        else:
            statement = Statement(node, end)
            found.update((line, statement) for line in range(first, end + 1) if line not in found)
        for part in _parts(node):
            _take(part, statement)
        if isinstance(node, ast.AugAssign):
            _take_read(node.target, statement)
    return found


def _makes(node: ast.stmt) -> bool:
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return)):
        return False
    if any(isinstance(each, (ast.Tuple, ast.List)) for each in getattr(node, "targets", ())):
        return False
    value = node.value
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in _MAKERS
    return isinstance(value, _DISPLAYS)


def _inside(node: ast.stmt) -> list[tuple[int, int | str]]:
    """Return the parts of a value over several lines that a statement returns, or gives a name."""
    value = getattr(node, "value", None)
    one_name = isinstance(node, ast.Assign) and len(node.targets) == 1 and _path(node.targets[0]) is not None
    if not (one_name or isinstance(node, (ast.AnnAssign, ast.Return))) or node.end_lineno == node.lineno:
        return []
    if isinstance(value, (ast.List, ast.Tuple)):
        if any(isinstance(each, ast.Starred) for each in value.elts):
            return []
        found: list[tuple[int, int | str]] = [(each.lineno, at) for at, each in enumerate(value.elts)]
    elif isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values)
        found = [
            (each.lineno, key.value)
            for key, each in pairs
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]
    elif isinstance(value, ast.Call):
        found = [(each.value.lineno, each.arg) for each in value.keywords if each.arg is not None]
    else:
        return []
    return found[:MOST_PATHS] if len({line for line, _ in found}) > 1 else []


def _nodes(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements, an outer one before those in its body."""
    left = [tree]
    while left:
        node = left.pop(0)
        if isinstance(node, ast.stmt):
            yield node
        left += [
            each
            for each in ast.iter_child_nodes(node)
            if isinstance(each, (ast.stmt, ast.ExceptHandler)) or type(each).__name__ == "match_case"
        ]


def _parts(node: ast.stmt) -> list[ast.AST]:
    """Return the expressions that a statement evaluates itself."""
    if isinstance(node, _DEFINITIONS):
        given = [] if isinstance(node, ast.ClassDef) else [*node.args.defaults, *node.args.kw_defaults]
        return [*node.decorator_list, *(each for each in given if each is not None)]
    return [
        each
        for each in ast.iter_child_nodes(node)
        if not isinstance(each, (ast.stmt, ast.ExceptHandler)) and type(each).__name__ != "match_case"
    ]


def _take(node: ast.AST, statement: Statement, *, stored: bool = False) -> None:
    """Add what an expression reads and writes."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        path = _path(node)
        if path is not None:
            changed = stored or isinstance(node.ctx, ast.Store)
            into = statement.writes if changed else statement.reads
            if path not in into and len(statement.reads) + len(statement.writes) < MOST_PATHS:
                into.append(path)
                statement.lines.setdefault(path, node.lineno)
            return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        _take(node.func.value, statement)  # its method may change it
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            _take(each, statement)
        return
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        _take(node.value, statement, stored=True)
        _take(node.value, statement)
        _take(node.slice, statement)
        return
    for child in ast.iter_child_nodes(node):
        _take(child, statement)


def _take_read(target: ast.expr, statement: Statement) -> None:
    path = _path(target)
    if path is not None and path not in statement.reads:
        statement.reads.append(path)


def _path(node: ast.AST) -> Path | None:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *names[::-1][:MOST_ATTRIBUTES])
