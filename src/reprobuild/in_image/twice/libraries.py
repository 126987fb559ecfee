"""Records, for a trace, what libraries give that no Python computes: Polars, pandas, datetime, torch, NumPy.

What Polars computes has a digest of what went in beside that of what came out: only with equal inputs another
output says something, as it does of an operation of torch.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import linecache
import os
import re
import sys
import weakref
from collections import deque
from typing import Any

from . import missing_seeds, time_travel
from .held_values import rows_of
from .places import here, is_users, made, place_of, text
from .statements import statements
from .watching import Watcher, warn

PINNED = object()
"""What an experiment gives in place of a seed."""
MOST_ROWS = 2_000_000
MOST_MEMORY = 16 << 20
"""Bytes of a new array."""
_POLARS = {
    "DataFrame": ("sample", "unique", "select", "with_columns", "join", "filter", "pivot", "partition_by"),
    "Series": ("sample", "shuffle", "unique", "value_counts", "mode"),
    "LazyFrame": ("collect",),
}


_LAZY = ("group_by", "unique", "join")
_planned: deque[tuple[str, int, str]] = deque(maxlen=64)
"""Lines at which plans of Polars' lost their order."""
_ORDERLESS = re.compile(r"\.(?:group_by|unique|join|sample|shuffle)\(")
"""Methods that give rows in no order, or draw them."""


def seeded_with(*values: Any) -> tuple[Any, ...]:
    """Return what a generator is seeded with; without a seed another value in each run, as the system's."""
    chosen = tuple(value for value in values if value is not None)
    return chosen or ("none given", os.urandom(8))


def is_seed(kind: str, label: str) -> bool:
    """Return whether a function takes a seed."""
    return kind == "seed" or label.endswith((".seed", ".default_rng", ".manual_seed"))


def _called_by_program() -> bool:
    return is_users(sys._getframe(2).f_code.co_filename)


def install(watcher: Watcher, sources: Any) -> None:
    """Watch what is imported later."""
    watcher.after("numpy", functools.partial(_numpy, sources))
    watcher.after("datetime", functools.partial(_datetime, sources))
    watcher.after("pandas", functools.partial(_pandas, sources))
    watcher.after("polars", functools.partial(_polars, sources))
    watcher.after("polars.dataframe.group_by", functools.partial(_groups, sources))
    for name in ("gymnasium.spaces", "gym.spaces"):
        watcher.after(name, functools.partial(_spaces, sources))
    watcher.after("sklearn.base", functools.partial(_estimators, sources))
    watcher.after("optuna.samplers._lazy_random_state", functools.partial(_samplers, sources))


def _numpy(sources: Any, module: Any) -> None:
    """Watch arrays that have what was in memory before, until the program fills them."""
    for name in ("empty", "empty_like"):
        setattr(module, name, _uninitialized(sources, getattr(module, name), f"numpy.{name}"))


def _uninitialized(sources: Any, inner: Any, label: str) -> Any:
    @functools.wraps(inner)
    def made(*arguments: Any, **keywords: Any) -> Any:
        frame = sys._getframe(1)
        place = (frame.f_code.co_filename, frame.f_lineno or 0, "")
        # NumPy's own code in C calls it, too, as a generator's random() does, and has no frame.
        if not is_users(place[0]) or "empty" not in text(place):
            return inner(*arguments, **keywords)
        array = sources.call_of("memory", label, inner, arguments, keywords)
        if not array.dtype.hasobject and array.nbytes <= MOST_MEMORY:  # else its elements are None
            held = hashlib.sha256(array.tobytes()).hexdigest()
            sources.note("memory", label, _Shown(f"bytes {held[:12]}"))
        return array

    return made


def zeroed(array: Any) -> Any:
    """Return an array of NumPy's with zeros for what was in its memory."""
    if not array.dtype.hasobject:
        array.fill(0)
    return array


def _datetime(sources: Any, module: Any) -> None:
    """Watch the moments that the program asks for; the class is in C, so entries of its dictionary change."""
    kind = module.datetime
    entries = time_travel.moments_of(kind)
    for name in ("now", "utcnow"):
        inner = entries[name].__get__
        entries[name] = classmethod(_moment(sources, inner, f"datetime.datetime.{name}"))
    time_travel.changed(kind)


def _pandas(sources: Any, module: Any) -> None:
    kind = module.Timestamp
    for name in ("now", "today", "utcnow"):
        inner = vars(kind)[name].__get__
        setattr(kind, name, classmethod(_moment(sources, inner, f"pandas.Timestamp.{name}")))


def _moment(sources: Any, bound: Any, label: str) -> Any:
    utc = label.endswith("utcnow")

    def moment(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        result = bound(None, cls)(*arguments, **keywords)
        if not _called_by_program():
            return result
        seconds = sources.note("clock", label, result)
        if seconds is result:
            return result
        # An experiment's clock gives seconds.
        zone = result.tzinfo
        return (
            cls.fromtimestamp(seconds, zone) if zone is not None or not utc else cls.utcfromtimestamp(seconds)
        )

    return moment


SPACES = "gymnasium.spaces."
_MADE = "_reprobuild_made"
"""The attribute of a space that tells where the program made it: spaces have no hash."""


def _spaces(sources: Any, module: Any) -> None:
    """Watch what the program draws from spaces, whose generators the system seeds at some time before.

    The line that made the space is told, too: to seed a space that is made again each time changes nothing.
    """
    made = module.Space.__init__

    @functools.wraps(made)
    def init(self: Any, *arguments: Any, **keywords: Any) -> None:
        vars(self)[_MADE] = here(2, imports=False)
        made(self, *arguments, **keywords)

    module.Space.__init__ = init
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and issubclass(kind, module.Space) and "sample" in vars(kind):
            owner: Any = kind
            owner.sample = _sampled(sources, owner.sample, f"{SPACES}{kind.__name__}.sample")


def _sampled(sources: Any, inner: Any, label: str) -> Any:
    @functools.wraps(inner)
    def sample(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if not _called_by_program():
            return inner(self, *arguments, **keywords)
        drawn = sources.call_of("draw", label, functools.partial(inner, self), arguments, keywords)
        if _MADE in vars(self):
            sources.told_beside(place_of("draw", 2), vars(self)[_MADE])
        return sources.note("draw", label, drawn)

    return sample


def _estimators(sources: Any, module: Any) -> None:
    """Keep where the program makes each estimator: one without a seed draws when it is fitted.

    If a seed of 0 counts as none somewhere, that line is told, too.
    """
    kind = module.BaseEstimator

    def new(cls: Any, *_: Any, **__: Any) -> Any:
        estimator = super(kind, cls).__new__(cls)
        with contextlib.suppress(TypeError):  # of a class that has no hash
            frame = sys._getframe(1)
            own = here(1, imports=False)
            place = made[estimator] = missing_seeds.left_out_at(frame) or own
            sources.told_beside(place, missing_seeds.counts_zero_as_none(frame) or own)
        return estimator

    kind.__new__ = new
    cloned = module.clone

    @functools.wraps(cloned)
    def clone(estimator: Any, *arguments: Any, **keywords: Any) -> Any:
        result = cloned(estimator, *arguments, **keywords)
        with contextlib.suppress(TypeError):
            if estimator in made:
                made[result] = made[estimator]
        return result

    module.clone = clone


def _samplers(sources: Any, module: Any) -> None:
    """Let Optuna's samplers, which ask the system for a seed as they are used first, tell who made them."""
    kind = module.LazyRandomState
    made, seeded = kind.__init__, kind._set_rng
    places: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    @functools.wraps(made)
    def init(self: Any, *arguments: Any, **keywords: Any) -> None:
        places[self] = here(1, imports=False)
        made(self, *arguments, **keywords)

    @functools.wraps(seeded)
    def set_rng(self: Any) -> None:
        place = places.get(self)
        sources.at = place if place and place[0] else None
        try:
            seeded(self)
        finally:
            sources.at = None

    kind.__init__, kind._set_rng = init, set_rng


def _polars(sources: Any, module: Any) -> None:
    plans = getattr(module, "LazyFrame", None)
    for name in _LAZY:
        if plans is not None and name in vars(plans):
            setattr(plans, name, _noted(vars(plans)[name]))
    for kind, names in _POLARS.items():
        owner = getattr(module, kind, None)
        for name in names:
            if owner is not None and name in vars(owner):
                place_of = _without_order if name == "collect" else _line_of_chain
                made = _computed(sources, vars(owner)[name], f"polars.{kind}.{name}", place_of)
                setattr(owner, name, made)


def _noted(inner: Any) -> Any:
    """Keep the line at which a plan of Polars' loses its order."""

    @functools.wraps(inner)
    def lazily(*arguments: Any, **keywords: Any) -> Any:
        place = here(1, imports=False)
        if place[0] and keywords.get("maintain_order") in (None, False, "none"):
            _planned.append(place)
        return inner(*arguments, **keywords)

    return lazily


def _without_order(_: Any) -> tuple[str, int, str] | None:
    """Return the line of a chain of calls, which ends with this one, that keeps no order, if one does.

    Else the last one at which a plan was made that keeps none.
    """
    return _line_of_chain(_, 3) or (_planned[-1] if _planned else None)


def _line_of_chain(_: Any, depth: int = 2) -> tuple[str, int, str] | None:
    """Return the line that draws or keeps no order, of the statement so many calls above, if one does."""
    frame = sys._getframe(depth)
    file = frame.f_code.co_filename
    try:
        found = statements("".join(linecache.getlines(file))).get(frame.f_lineno or 0)
    except (SyntaxError, ValueError, RecursionError):
        found = None
    for number in range(found.line, found.end + 1) if found else ():
        line = linecache.getline(file, number)
        if _ORDERLESS.search(line) and "maintain_order=True" not in line:
            return file[-300:], number, frame.f_code.co_name
    return None


def _groups(sources: Any, module: Any) -> None:
    made = module.GroupBy.__init__
    places: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    @functools.wraps(made)
    def init(self: Any, *arguments: Any, **keywords: Any) -> None:
        made(self, *arguments, **keywords)
        places[self] = here(1, imports=False)

    module.GroupBy.__init__ = init
    inner = module.GroupBy.agg
    module.GroupBy.agg = _computed(sources, inner, "polars.DataFrame.group_by", places.get)


def _computed(sources: Any, inner: Any, label: str, place_of: Any) -> Any:
    """Watch a method; ``place_of`` gives the line to tell, where that is not the one that calls it."""

    @functools.wraps(inner)
    def computed(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if not _called_by_program():
            return inner(self, *arguments, **keywords)
        given = _safely((getattr(self, "df", self), arguments, keywords))
        sources.at = place_of(self)
        try:
            result = sources.call_of("computed", label, inner, (self, *arguments), keywords)
            found = _safely(result)
            if given and found:
                sources.note("computed", label, _Shown(f"a table {found} from {given}"))
        finally:
            sources.at = None
        return result

    return computed


def _safely(value: Any) -> str:
    try:
        return digest(value)
    except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
        warn("a table is not recorded", error)
        return ""


class _Shown:
    """Shows a text in place of a value, such as its digest."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def digest(value: Any) -> str:
    """Return a short digest of tables, columns and what else an argument may be, in its order."""
    found = hashlib.sha256()
    _add(value, found)
    return found.hexdigest()[:12]


def _add(value: Any, found: Any) -> None:
    if isinstance(value, (list, tuple)):
        for each in value:
            _add(each, found)
    elif isinstance(value, dict):
        for key in value:
            found.update(f"{key}=".encode())
            _add(value[key], found)
    elif hasattr(value, "hash_rows") or hasattr(value, "to_frame"):
        frame = value if hasattr(value, "hash_rows") else value.to_frame()
        found.update(f"{frame.schema}{frame.shape}".encode())
        found.update(_rows(frame))
    else:
        found.update(str(value).encode("utf-8", "replace"))


def _rows(frame: Any) -> bytes:
    try:
        hashed = rows_of(frame.head(MOST_ROWS))
    except Exception:  # noqa: BLE001 -- columns of a type that has no hash
        hashed = None
    return hashed if hashed is not None else repr(frame.head(1000).rows()).encode("utf-8", "replace")


def fixed(label: str, inner: Any, given: Any, named: Any) -> Any:
    """Call a function of Polars so that it repeats: its generator seeded, its rows sorted."""
    sys.modules["polars"].set_random_seed(0)
    result = inner(*given, **named)
    if label.endswith(("sample", "shuffle")):
        return result
    return result.sort(result.columns) if hasattr(result, "columns") else result.sort()


def torch_generators(sources: Any, module: Any) -> None:
    """Watch how generators of torch's that a program makes itself are seeded.

    Their class cannot be changed, so one below it takes its place, of which all generators are instances.
    """
    base = module.Generator

    class Kind(type(base)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, base)

    class Generator(base, metaclass=Kind):  # type: ignore[misc, valid-type]
        def manual_seed(self, seed: int) -> Any:
            users = is_users(sys._getframe(1).f_code.co_filename)
            if users and sources.note("seed", "torch.Generator.manual_seed", seeded_with(seed)) is PINNED:
                seed = 0
            return super().manual_seed(seed)

        def seed(self) -> Any:
            users = is_users(sys._getframe(1).f_code.co_filename)
            if users and sources.note("seed", "torch.Generator.seed", seeded_with()) is PINNED:
                super().manual_seed(0)
                return 0
            return super().seed()

    # By which it is pickled.
    Generator.__module__, Generator.__qualname__ = module.__name__, "Generator"
    module.Generator = Generator
