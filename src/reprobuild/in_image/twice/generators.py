"""Watches what generators are seeded with and draw: those of Python and NumPy, and a program's own."""

from __future__ import annotations

import functools
import re
import sys
import weakref
from collections.abc import Callable
from typing import Any

from . import thread_hints
from .libraries import PINNED, seeded_with
from .missing_seeds import takes_none
from .places import here, inside, is_users, text
from .watching import Watcher

_of_the_system: weakref.WeakKeyDictionary[Any, tuple[str, int, str]] = weakref.WeakKeyDictionary()
"""Generators of the system's numbers, and the lines that made them."""
_SEEDED_STATE = re.compile(r"RandomState\(\s*[^)\s]")

DRAWS = (
    *thread_hints.DRAWS,
    *("getrandbits", "randbytes", "betavariate", "expovariate", "triangular", "seed"),
)
"""Functions of Python's generators."""


def install(watcher: Watcher, sources: Any) -> None:
    """Watch what is imported later."""
    watcher.after("random", functools.partial(_python, sources))
    watcher.after("numpy.random", functools.partial(_numpy, sources))


def _numpy(sources: Any, module: Any) -> None:
    """Watch the draws from NumPy's own generator, which libraries take as an object.

    Its class is in C, so one below it takes its place, with the same bits to draw from.
    """
    mtrand = module.mtrand
    own = mtrand._rand
    kind: Any = type("RandomState", (type(own),), {"__module__": type(own).__module__})
    for name in dir(type(own)):
        if name[0] != "_" and name not in ("get_state", "set_state", "seed"):
            inner = getattr(type(own), name)
            setattr(kind, name, sources.wrapped(inner, f"numpy.random.{name}", "draw"))
    watched = kind(own._bit_generator)
    mtrand._rand = watched
    for owner in (module, mtrand):
        for name, value in list(vars(owner).items()):
            if getattr(value, "__self__", None) is own:
                setattr(owner, name, getattr(watched, name))
    sources.watch(module, ("seed", "default_rng"), "draw", "numpy.random")


def _watch_own(sources: Any, generator: Any) -> None:
    """Watch what is drawn from a library's own generator, which the system seeds."""
    for name in DRAWS:
        if hasattr(generator, name) and name != "seed":
            inner = getattr(generator, name)
            setattr(generator, name, sources.wrapped(inner, f"random.Random.{name}", "draw"))


def _python(sources: Any, module: Any) -> None:
    """Watch the draws of Python's generators, and those that a program makes itself."""
    sources.watch(module, DRAWS, "draw")
    for name in DRAWS:  # libraries take the generator as an object, too, as NetworkX does
        if hasattr(module, name):
            setattr(module._inst, name, getattr(module, name))
    _made_by_program(sources, module)
    for name in ("random", "getrandbits", "randbytes"):
        inner = vars(module.SystemRandom).get(name)
        if inner is not None:
            setattr(module.SystemRandom, name, _of_system(sources, name, inner, module.__file__))


def _made_by_program(sources: Any, module: Any) -> None:
    """Watch how generators are seeded that a program makes, and those of libraries that are not."""
    made, seeded = module.Random.__init__, module.Random.seed

    @functools.wraps(made)
    def init(self: Any, *seed: Any) -> None:
        made(self, *seed)
        if isinstance(self, module.SystemRandom):
            _of_the_system[self] = here(2, imports=False)
            return
        frame = sys._getframe(1)
        if is_users(frame.f_code.co_filename):
            with sources.told_where_left_out(frame):
                if sources.note("seed", "random.Random", seeded_with(*seed)) is PINNED:
                    seeded(self, 0)
        elif seeded_with(*seed)[0] == "none given" and inside(frame, "draw") is not None:
            _watch_own(sources, self)

    @functools.wraps(seeded)
    def reseed(self: Any, *seed: Any, **named: Any) -> None:
        seeded(self, *seed, **named)
        frame = sys._getframe(1)
        given = seeded_with(*seed[:1], *named.values())
        if is_users(frame.f_code.co_filename):
            with sources.told_where_left_out(frame):
                if sources.note("seed", "random.Random.seed", given) is PINNED:
                    seeded(self, 0)

    module.Random.__init__, module.Random.seed = init, reseed


def _of_system(sources: Any, name: str, inner: Callable[..., Any], own: str) -> Callable[..., Any]:
    @functools.wraps(inner)
    def wrapper(*arguments: Any) -> Any:
        result = inner(*arguments)
        frame, call = sys._getframe(1), None
        while frame.f_back is not None and frame.f_code.co_filename == own:
            frame, call = frame.f_back, frame
        # randrange draws again until a number fits, another number of times in each run: the first is told.
        again, label = call is not None and call is sources.call, f"random.SystemRandom.{name}"
        if again:
            return sources.call_of("entropy", label, lambda *_: result, arguments[1:], {})
        sources.call = call
        library = inside(frame, "entropy")
        if library is None:
            return result
        line = text((frame.f_code.co_filename, frame.f_lineno or 0, ""))
        with sources.told_where_left_out(frame):
            # NumPy's RandomState(SEED) draws first, and forgets that when it takes the seed.
            if sources.at or not _SEEDED_STATE.search(line) or takes_none(frame, "RandomState"):
                result = sources.call_of("entropy", label, lambda *_: result, arguments[1:], {})
                made = _of_the_system.get(arguments[0])
                if made is not None and made[0] and not library:
                    sources.told_beside(here(2, imports=False), made)
                sources.note("entropy", label + library, result)
        return result

    return wrapper
