"""Lines of what threads and tasks run, that change or draw from what these share."""

from __future__ import annotations

import ast

from .syntax import RUNS, called_name, last_name, owner_of

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

GETS = ("get", "get_nowait")
SHARED_GENERATOR = "what threads draw from one generator"
FILLED = "what threads fill in the order in which they come to it"
CHANGED = "what threads change that they share"
CHECKED = "what threads go by that they change meanwhile"
RACED = "what threads read and change while others may change it"
COUNTED = "what threads take in turn from one counter"
_LOCK = "lock"
_MEMORY = (
    *("Array", "RawArray", "RawValue", "ShareableList", "SharedMemory", "Value"),
    *("memmap", "share_memory_"),
)
"""What makes memory that processes share."""
_VIEWS = ("as_array", "asarray", "frombuffer", "get_obj", "memmap", "ndarray", "reshape")
_MOST_CALLS = 4
"""Functions that call each other, of which threads run the first."""
_ENDS = (ast.Break, ast.Return, ast.Continue)
_STARTS = {"submit": 0, "map": 0, "imap": 0, "apply_async": 0, "imap_unordered": 0, "run_in_executor": 1}
"""Which argument is the function that other threads then run."""
_TASKS = ("create_task", "ensure_future", "gather", "start_soon")
_ANY_ORDER = ("add", "update", "setdefault")
"""Methods that mostly leave the same in any order."""
_IN_ORDER = ("append", "extend", "put", "insert", "write", "writelines", "writerow", "writerows")
_FILLS = (*_IN_ORDER, *_ANY_ORDER)
DRAWS = (
    *("random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle", "gauss"),
    "normalvariate",
)
"""Methods of Python's generators that programs mostly call."""
_GENERATORS = ("rng", "prng", "generator")
"""How names of generators mostly end."""
_DRAWS = (
    *DRAWS,
    *("normal", "integers", "permutation", "permuted", "standard_normal", "exponential", "poisson"),
    *("rand", "randn", "binomial"),
)


class Started:
    """A function that threads run."""

    def __init__(self, function: ast.FunctionDef, lines: list[int], own: set[str]) -> None:
        """``lines``: those that start them; ``own``: what each has for itself, as ``self.rng``."""
        self.function, self.lines, self.own = function, lines, own


def run_by_threads(tree: ast.AST) -> list[Started]:
    """Return the functions that threads run."""
    lines: dict[str, list[int]] = {}
    of_one: set[str] = set()  # object, or of none
    each_time = _loop_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = called_name(node)
            at = _STARTS.get(name, -1) if isinstance(node.func, ast.Attribute) else -1  # not Python's own map
            given = [node.args[at]] if 0 <= at < len(node.args) else []
            given += [word.value for word in node.keywords if word.arg in ("target", "func", "fn")]
            for each in given:
                lines.setdefault(last_name(each), []).append(node.lineno)
                if not (isinstance(each, ast.Attribute) and last_name(each.value) in each_time):
                    of_one.add(last_name(each))
        elif isinstance(node, ast.ClassDef) and any(
            last_name(base) in ("Thread", "Process") for base in node.bases
        ):
            lines.setdefault("run", [])
    made = _made_by_objects(tree)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [
        Started(each, lines[each.name], made.get(id(each), set()) if each.name not in of_one else set())
        for each in functions
        if each.name in lines
    ]


def _loop_names(tree: ast.AST) -> set[str]:
    """Return the names that go through something."""
    loops = (node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.comprehension)))
    return {last_name(part) for loop in loops for part in ast.walk(loop.target)}


def _made_by_objects(tree: ast.AST) -> dict[int, set[str]]:
    """Return, by each method, the attributes that its class' constructor makes and is not given."""
    found: dict[int, set[str]] = {}
    for kind in ast.walk(tree):
        body = kind.body if isinstance(kind, ast.ClassDef) else []
        methods = [each for each in body if isinstance(each, ast.FunctionDef)]
        constructors = [each for each in methods if each.name == "__init__"]
        made = {
            ast.dump(target).replace("Store()", "Load()")
            for constructor in constructors
            for node in ast.walk(constructor)
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Call, ast.List, ast.Dict))
            for target in node.targets
            if isinstance(target, ast.Attribute)
        }
        found.update((id(each), made) for each in methods if made)
    return found


def of_thread(started: Started, queues: Container[str], got: Container[str]) -> Iterator[tuple[int, str]]:
    """Give the lines of a function that threads run, at which they fill what they share.

    Where it only fills a place of its own, which an argument says, what it calls may change the rest: then it
    is the line that starts the threads. Of what it puts into a queue, that counts which takes it.
    """
    node = started.function
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    own = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    # A place that an argument says, or what is taken from a queue, no other thread fills.
    taken = {
        last_name(target)
        for each in ast.walk(node)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)
        if called_name(each.value) in GETS and last_name(owner_of(each.value)) in queues
        for target in each.targets
    }
    places = {each.arg for each in node.args.args} | taken
    loops = (each for each in ast.walk(node) if isinstance(each, ast.For))
    places |= {last_name(each.target) for each in loops if last_name(each.iter) in places}
    failing = {
        line.lineno
        for each in ast.walk(node)
        if isinstance(each, ast.ExceptHandler)
        for line in ast.walk(each)
        if isinstance(line, ast.stmt)
    }

    def is_own(value: ast.expr) -> bool:
        return _name_of(value) in own or ast.dump(value) in started.own

    def others(filled: Iterator[tuple[int, ast.expr]]) -> list[int]:
        pairs = [(line, value) for line, value in filled if line not in failing and not is_own(value)]
        return [line for line, value in pairs if last_name(value) not in got]

    filled, shared = others(_filled(node)), others(_filled(node, but=places))
    drawn = [line for line, value in _drawn(node) if not is_own(value)]
    any_order = {
        each.lineno
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and called_name(each) in _ANY_ORDER
    }
    yield from ((line, CHANGED if line in any_order else FILLED) for line in shared)
    yield from ((line, SHARED_GENERATOR) for line in drawn)
    yield from ((line, CHECKED) for line in _checked(node))
    if filled and not (shared or drawn or taken):
        yield from ((line, "threads that share what they work on") for line in started.lines)


def under_locks(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give the lines at which something is filled, or added up, while a lock is held.

    What has a key of its own has no order.
    """
    for block in _locked(tree):
        for node in ast.walk(block):
            if isinstance(node, ast.Call) and called_name(node) in _IN_ORDER:
                yield node.lineno, FILLED
            if isinstance(node, ast.AugAssign) and not isinstance(node.value, ast.Constant):
                yield node.lineno, CHANGED


def _locked(tree: ast.AST) -> list[ast.With | ast.AsyncWith]:
    """Return the blocks in which a lock is held."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, (ast.With, ast.AsyncWith))]
    return [each for each in blocks if any(_is_lock(item.context_expr) for item in each.items)]


def _is_lock(held: ast.expr) -> bool:
    name = called_name(held) if isinstance(held, ast.Call) else last_name(held)
    return _LOCK in name.lower()


def raced(tree: ast.AST, started: list[Started]) -> Iterator[tuple[int, str]]:
    """Give the lines of functions which threads call that read something, call another, and then change it.

    Another thread may change it meanwhile, as of ``counts[key] = counts.get(key, 0) + 1``. Also those that
    take the next of an iterator that threads share.
    """
    defined: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            defined.setdefault(node.name, []).append(node)
    seen: dict[int, ast.FunctionDef] = {}
    left = [each.function for each in started]
    for _ in range(_MOST_CALLS):
        fresh = [each for each in left if id(each) not in seen]
        seen.update((id(each), each) for each in fresh)
        calls = {called_name(node) for each in fresh for node in ast.walk(each) if isinstance(node, ast.Call)}
        left = [each for name in sorted(calls) for each in defined.get(name, ())]
    own = {each for one in started for each in one.own}
    in_memory = any(isinstance(each, ast.Call) and called_name(each) in _MEMORY for each in ast.walk(tree))
    for function in seen.values():
        yield from _changed(function, own, in_memory=in_memory)
        calls_of = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        yield from ((call.lineno, COUNTED) for call in calls_of if _takes_next(call, own))


def _takes_next(call: ast.Call, own: Container[str]) -> bool:
    """Return whether it is ``next(…)`` of an attribute that is not the thread's own."""
    given = call.args[:1] if called_name(call) == "next" else []
    return any(isinstance(each, ast.Attribute) and ast.dump(each) not in own for each in given)


def _changed(function: ast.FunctionDef, own: Container[str], *, in_memory: bool) -> Iterator[tuple[int, str]]:
    """``in_memory``: whether processes share memory, where nothing of Python's lets one go on at a time."""
    locked = {id(node) for block in _locked(function) for node in ast.walk(block)}
    views = _views(function) if in_memory else set()
    for node in ast.walk(function):
        if not isinstance(node, (ast.Assign, ast.AugAssign)) or id(node) in locked:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        in_part = isinstance(target, ast.Subscript)
        target = target.value if isinstance(target, ast.Subscript) else target
        changed = ast.dump(target).replace("Store()", "Load()")
        parts = [*ast.walk(node.value)]
        reads = isinstance(node, ast.AugAssign) or any(ast.dump(part) == changed for part in parts)
        if isinstance(target, ast.Attribute) and changed not in own:
            shared = in_memory and target.attr == "value"
            shared = shared or any(isinstance(part, ast.Call) for part in parts)
        else:
            # Else a name is mostly the function's own.
            shared = in_part and _name_of(target) in views
        if reads and shared:
            yield node.lineno, RACED


def _views(function: ast.FunctionDef) -> set[str]:
    """Return the names that a function gives views of memory, and its own for what it is given."""
    found = {each.arg for each in function.args.args}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            called = called_name(node.value) if isinstance(node.value, ast.Call) else ""
            if called in _VIEWS or isinstance(node.value, ast.Attribute):
                found.add(node.targets[0].id)
            else:
                found.discard(node.targets[0].id)
    return found


def _checked(node: ast.FunctionDef) -> Iterator[int]:
    """Give the lines at which a function ends, or a turn of its loop, by an attribute that it changes."""
    stored = {
        ast.dump(each.value) + each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    for each in ast.walk(node):
        if isinstance(each, ast.While) or (isinstance(each, ast.If) and isinstance(each.body[-1], _ENDS)):
            read = [part for part in ast.walk(each.test) if isinstance(part, ast.Attribute)]
            if stored & {ast.dump(part.value) + part.attr for part in read}:
                yield each.lineno


def _name_of(value: ast.expr) -> str:
    """Return the name that an expression is; empty: it is another one."""
    return value.id if isinstance(value, ast.Name) else ""


def tasks(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give the lines of coroutines that wait, at which they fill what is not their own."""
    if not any(isinstance(node, ast.Call) and called_name(node) in _TASKS for node in ast.walk(tree)):
        return
    beside = _started_beside(tree)
    for node in ast.walk(tree):
        inner = [*ast.walk(node)] if isinstance(node, ast.AsyncFunctionDef) else []
        waits = [each.lineno for each in inner if isinstance(each, (ast.Await, ast.AsyncWith, ast.AsyncFor))]
        own = {each.id for each in inner if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        for line, value in _filled(node) if waits else ():
            if line > min(waits) and not (isinstance(value, ast.Name) and value.id in own):
                yield line, "what tasks fill in the order in which tasks end"
        if waits and isinstance(node, ast.AsyncFunctionDef) and node.name in beside:
            yield from (
                (line, SHARED_GENERATOR) for line, value in _drawn(node) if _name_of(value) not in own
            )


def _started_beside(tree: ast.AST) -> set[str]:
    """Return the names of what is called and not awaited at once: a coroutine may run beside others then."""
    awaited = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Await)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    alone = {id(each) for call in calls if called_name(call) in RUNS for each in call.args}
    return {called_name(call) for call in calls if id(call) not in awaited | alone}


def _drawn(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, ast.expr]]:
    """Give what a function draws from, or hands on to draw from, with the lines."""
    given = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in _DRAWS:
            yield node.lineno, node.func.value
        for each in (*node.args, *(word.value for word in node.keywords)):
            if last_name(each).rpartition("_")[2] in _GENERATORS and _name_of(each) not in given:
                yield node.lineno, each


def _filled(function: ast.AST, but: Container[str] = ()) -> Iterator[tuple[int, ast.expr]]:
    """Give what a function puts something into, with the lines; not into places of some names alone."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for each in targets:
                of_its_own = isinstance(node, ast.Assign) and last_name(getattr(each, "slice", each)) in but
                if isinstance(each, ast.Subscript) and not of_its_own:
                    yield node.lineno, each.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            yield node.lineno, node.func.value
