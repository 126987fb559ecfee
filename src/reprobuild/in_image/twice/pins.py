"""An experiment: the program with one suspect pinned, and nothing else changed.

``REPROBUILD_TWICE_PIN`` holds a line for each: what is pinned, the number of the program's line, its file.
Line 0 of no file means everywhere. What is pinned gives the same values in each run: a generator is as if it
had been seeded before that line, a clock advances by a little at each call, a folder's entries are sorted.
Nothing is recorded of where the values came from, only what the program computes with them.
"""

from __future__ import annotations

import ctypes
import functools
import os
import random
import re
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Any

from . import commands, libraries, library_pins, measured, object_hashes, orders, queries, thread_pins
from . import sources as recorded
from .identities import Identities
from .places import place_of
from .watching import Watcher, warn

PIN = "REPROBUILD_TWICE_PIN"
EACH_DRAW = "each draw"
"""That the generator is seeded before each call: which worker makes which does not matter then."""
_MOMENT = 1_900_000_000
"""What a frozen clock begins with, in 2030: the dates in the program's data are past, as they were for it."""
_TICK, _GROWTH, _LONGEST_TICK, _TICKS = 0.001, 1.05, 0.1, 1000
"""Seconds by which a frozen clock advances at first, and then more and more: so what waits for it ends."""
_FIXED = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2)."""


class Pins(recorded.Sources):
    """Gives other values in place of recording those that came from outside."""

    def __init__(self, chosen: str) -> None:
        super().__init__()
        self.places: dict[str, set[tuple[str, int]]] = {}
        for line in chosen.splitlines():
            kind, number, file = line.split("\t", 2)
            self.places.setdefault(kind, set()).add((file, int(number)))
        self._own = random.Random(0)  # noqa: S311 -- it has to repeat
        self._generators: dict[tuple[str, str], Any] = {}
        """In place of a module's, in each thread: else the draws of one would depend on when others draw."""
        self._objects = Identities()
        self._hashes: dict[int, int] = {}
        self._names = 0
        self._ticks, self._passed = 0, 0.0

    def pinned(self, kind: str, depth: int) -> bool:
        """Return whether the program's line that is calling is pinned."""
        chosen = self.places.get(kind) or (kind == "draw" and self.places.get(EACH_DRAW))
        if not chosen:
            return False
        place = self.at or place_of(kind, depth + 1)
        return ("", 0) in chosen or place[:2] in chosen

    def note(self, kind: str, name: str, value: Any, at: Any = None) -> Any:  # noqa: ARG002, PLR0911 -- one a kind
        """Return what is given in place of a value."""
        if not self.pinned(kind, 2):
            return value
        if kind == "seed":
            return libraries.PINNED
        if kind in ("clock", "stamp", "mtime"):
            return self._clock(kind, name, value)
        if kind == "process":
            return 1000
        if kind == "machine" and not isinstance(value, str):
            return tuple(map(_fixed, value)) if isinstance(value, tuple) else _fixed(value)
        if kind == "entropy" and isinstance(value, int):
            return self._own.getrandbits(62)
        return sorted(value) if kind == "listing" else value

    def content(self, path: str) -> None:
        """Record nothing."""

    def script(self, path: str) -> None:
        """Record nothing."""

    def ended(self) -> None:
        """Record nothing."""

    def _clock(self, kind: str, name: str, value: Any) -> Any:
        if kind == "mtime":
            return type(value)(0)
        self._passed += min(_LONGEST_TICK, _TICK * _GROWTH**self._ticks)
        self._ticks = min(self._ticks + 1, _TICKS)
        seconds = _MOMENT + self._passed
        frozen = int(seconds * 1_000_000_000) if name.endswith("_ns") else seconds
        # It is a time still: what is printed of it, and of clocks that are not frozen, is no result.
        return measured.of(frozen, instant=isinstance(value, (measured.FloatInstant, measured.IntInstant)))

    def call_of(  # noqa: C901, PLR0911 -- one a kind
        self, kind: str, label: str, inner: Any, given: Any, named: Any
    ) -> Any:
        """Call what is watched, so that it gives the same in each run where it is pinned."""
        if not self.pinned(kind, 2):
            return inner(*given, **named)
        owner, _, name = label.rpartition(".")
        if label == "torch.seed":  # it takes none, and gives the one that it drew
            sys.modules["torch"].manual_seed(0)
            return 0
        if libraries.is_seed(kind, label):
            return inner(0)
        if kind == "draw":
            return self._drawn(owner, name, inner, given, named)
        if kind == "entropy":
            return self._entropy(name, inner(*given, **named), given)
        if kind == "listing":
            return Entries(inner(*given, **named))
        if kind == "name":
            return self._named(inner, given, named)
        if kind == "computed":
            return libraries.fixed(label, inner, given, named)
        if kind == "memory":
            return libraries.zeroed(inner(*given, **named))
        if kind == "address":
            return 16 * self._numbered(inner, given[0])
        if kind == "order":
            return self._ordered(label, given, named)
        if kind == "timeout":
            return inner(*given, **{**named, "timeout": None})
        return inner(*given, **named)

    def _numbered(self, inner: Any, value: Any) -> int:
        """Return a number in the place of the address of an object, or of a hash that may be made of some."""
        by_address: Any = object.__hash__
        if inner.__name__ == "id" or type(value).__hash__ == by_address:
            return self._objects.number_of(value)
        return self._hashes.setdefault(inner(value), len(self._hashes) + 1)

    def _drawn(self, owner: str, name: str, inner: Any, given: Any, named: Any) -> Any:
        """Draw from a generator of this experiment's: the program's keeps its state."""
        space = owner.startswith(libraries.SPACES)
        if space or owner == "random.Random":  # a library's own
            generator = inner.args[0] if space else inner.__self__
            own = vars(generator)  # not by its address, which the next one may have
            if "_reprobuild_seeded" not in own:
                own["_reprobuild_seeded"] = generator.seed(0)
            elif EACH_DRAW in self.places:
                generator.seed(0)
            return inner(*given, **named)
        key = owner, threading.current_thread().name
        is_object = owner == "numpy.random"  # which a method is given first
        own = self._generators.get(key)
        if own is None or EACH_DRAW in self.places:
            kind = type(given[0]).__mro__[1] if is_object else random.Random
            own = self._generators[key] = kind(zlib.crc32(key[1].encode()))
        return inner(own, *given[1:], **named) if is_object else getattr(own, name)(*given, **named)

    def _entropy(self, name: str, value: Any, given: Any) -> Any:
        own = self._own
        if isinstance(value, bytes):
            return own.getrandbits(8 * len(value)).to_bytes(len(value), "big") if value else value
        if "uuid" in sys.modules and isinstance(value, sys.modules["uuid"].UUID):
            return sys.modules["uuid"].UUID(int=own.getrandbits(128), version=4)
        if name == "choice":
            return own.choice(*given)
        if name == "randbelow":
            return own.randrange(*given)
        if isinstance(value, str):
            return f"{own.getrandbits(4 * len(value)):0{len(value)}x}"
        return getattr(own, name)(*given) if hasattr(own, name) else value

    def _named(self, inner: Any, given: Any, named: Any) -> Any:
        import tempfile  # noqa: PLC0415 -- only here

        before: Any = getattr(tempfile, "_name_sequence")  # noqa: B009 -- it is not public
        count = iter(range(self._names, 100_000))
        setattr(tempfile, "_name_sequence", (f"pinned{n:02}" for n in count))  # noqa: B010
        try:
            return inner(*given, **named)
        finally:
            self._names += 1
            setattr(tempfile, "_name_sequence", before)  # noqa: B010

    def _ordered(self, label: str, given: Any, named: Any) -> Any:
        if label == "imap_unordered":
            return given[0].imap(*given[1:], **named)
        if label == orders.WAIT:  # for all, which it then has in the order in which they were made
            base = sys.modules["concurrent.futures"]._base
            futures = list(given[0])
            for future in futures:
                try:
                    future.exception()
                except base.CancelledError:
                    continue
            return base.DoneAndNotDoneFutures(orders.InTurn(futures), set())
        if label == orders.ASYNCIO_WAIT:
            return orders.first_made(sys.modules["asyncio.tasks"].wait.__wrapped__, *given, **named)
        if label == orders.CONNECTION_WAIT:
            return orders.one_in_turn(sys.modules["multiprocessing.connection"].wait.__wrapped__, *given)
        # Each is waited for by what it then gives.
        return list(given[0])


def _fixed(value: Any) -> Any:
    """Return a number in place of a measured one: a share, or a number of bytes."""
    return 1 << 30 if isinstance(value, int) else 0.5


class Entries:
    """What a folder has, sorted or else in the opposite of its order, as `os.scandir` gives it."""

    def __init__(self, inner: Any, *, opposite: bool = False) -> None:
        with inner as entries:
            self._entries = iter(
                [*entries][::-1] if opposite else sorted(entries, key=lambda entry: entry.name)
            )

    def __iter__(self) -> Any:
        """Return the entries."""
        return self._entries

    def __next__(self) -> Any:
        """Return the next one."""
        return next(self._entries)

    def __enter__(self) -> Any:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing: the folder is closed."""


def _machine_files(pins: Pins) -> None:
    """Give the same numbers in each run for what the kernel tells in /proc."""
    import builtins  # noqa: PLC0415 -- only here
    import io  # noqa: PLC0415

    opened = builtins.open

    @functools.wraps(opened)
    def open_(file: Any, *arguments: Any, **keywords: Any) -> Any:
        found = opened(file, *arguments, **keywords)
        if not (isinstance(file, str) and file in recorded.MACHINE and pins.pinned("machine", 1)):
            return found
        with found:
            held = found.read()
        if isinstance(held, bytes):
            return io.BytesIO(re.sub(rb"\d+", b"500000", held))
        return io.StringIO(re.sub(r"\d+", "500000", held))

    builtins.open = open_


def _fix_addresses() -> None:
    """Start this process again where the kernel lets all lie at the same addresses."""
    change = ctypes.CDLL(None).personality
    now = change(0xFFFFFFFF)
    if now < 0 or now & _FIXED:
        return
    if change(now | _FIXED) >= 0:
        argv = getattr(sys, "orig_argv", None)
        if argv:
            os.execv(sys.executable, [sys.executable, *argv[1:]])  # noqa: S606 -- the same program


def _in_order(module: Any) -> None:
    """Let each DataLoader give its batches in the order in which they were asked for."""
    made = module.DataLoader.__init__

    @functools.wraps(made)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        named.pop("in_order", None)
        made(self, *arguments, **named)

    module.DataLoader.__init__ = init


def _no_timers(module: Any) -> None:
    """Let no timer interrupt the program."""
    module.setitimer = lambda *_: (0.0, 0.0)
    module.alarm = lambda _: 0


def _one_trial(module: Any) -> None:
    """Let each study of Optuna run one trial after the other, for which it does not reseed its sampler."""
    inner = module.Study.optimize

    @functools.wraps(inner)
    def optimize(self: Any, *arguments: Any, **named: Any) -> Any:
        return inner(self, *arguments[:3], **{**named, "n_jobs": 1})

    module.Study.optimize = optimize


def vary_listings() -> None:
    """Give the entries of each folder in the opposite of its order: of any two, the other comes first.

    No order of names would do: a folder may have just that, a tmpfs that of the newest first.
    """
    listing, scanning = os.listdir, os.scandir

    @functools.wraps(listing)
    def listdir(*arguments: Any) -> Any:
        return listing(*arguments)[::-1]

    @functools.wraps(scanning)
    def scandir(*arguments: Any) -> Any:
        return Entries(scanning(*arguments), opposite=True)

    setattr(os, "listdir", listdir)  # noqa: B010 -- these have many types
    setattr(os, "scandir", scandir)  # noqa: B010


_CHANGES: tuple[tuple[str, str, Callable[[Any], None]], ...] = (
    ("batches", "torch.utils.data.dataloader", _in_order),
    ("timers", "signal", _no_timers),
    ("trials", "optuna.study.study", _one_trial),
    ("duckdb", "duckdb", library_pins.one_thread_of_duckdb),
    ("numba", "numba", library_pins.seed_numba),
    ("arrow", "pyarrow.dataset", library_pins.one_writer_of_arrow),
    ("dask", "dask.config", library_pins.shuffle_by_tasks_of_dask),
    ("gensim", "gensim.models.word2vec", library_pins.one_worker_of_gensim),
    ("all of random", "random", lambda module: module.seed(0)),
    ("all of numpy.random", "numpy.random", lambda module: module.seed(0)),
    ("all of torch", "torch", lambda module: module.manual_seed(0)),
    ("sql draws", "duckdb", queries.seed_draws_of_duckdb),
    ("sql draws", "sqlite3", queries.seed_draws_of_sqlite),
    ("sql clock", "sqlite3", library_pins.stop_clock_of_sqlite),
    ("sql clock", "duckdb", library_pins.stop_clock_of_duckdb),
)
"""What is pinned everywhere, by a change to a module once it is imported."""


def install(watcher: Watcher) -> None:
    """Pin what was chosen."""
    pins = Pins(os.environ[PIN])
    if "addresses" in pins.places:
        try:
            _fix_addresses()
        except (OSError, AttributeError) as error:
            warn("addresses cannot be fixed", error)
        object_hashes.install(watcher)
    recorded.install(watcher, pins)
    if "machine" in pins.places:
        _machine_files(pins)
    commands.pin(pins.places)
    if "threads" in pins.places:
        thread_pins.install(watcher)
    for pin, module, change in _CHANGES:
        if pin in pins.places:
            watcher.after(module, change)
    if "query" in pins.places:
        watcher.after("duckdb", queries.one_thread_at(pins.places["query"]))
