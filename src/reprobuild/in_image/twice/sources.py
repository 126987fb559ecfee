"""Records, for a trace, what a program takes from outside of its own computation.

Clocks, process numbers, addresses, random draws of Python and NumPy, seeds, the order of a folder's entries,
opened files. Of calls that stand in libraries only draws and seeds count, each at the program's line that led
there, and the time in an archive. Each has its value's digest.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from . import (
    commands,
    generators,
    gpu_states,
    hints,
    libraries,
    library_hints,
    missing_seeds,
    orders,
    queries,
    settings,
    time_limits,
)
from .libraries import is_seed, seeded_with
from .places import here, inside, is_users, of_frame, place_of, text
from .watching import Watcher

MOST_CONTENT = 16 << 20
"""Bytes of a file whose content is told."""
MACHINE = tuple(f"/proc/{name}" for name in ("meminfo", "loadavg", "stat", "uptime", "vmstat", "cpuinfo"))
"""Files in which the kernel says how the machine does."""
MOST = 20_000
"""Records of one kind in a process."""

MAY_SEED = ("seed", "draw", "entropy", "clock")
"""Kinds of values that programs take in the place of a seed that they were not given."""
NOBODY = "", 0, ""
"""In the place of a line: there is none."""

CLOCKS = (
    *("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"),
    *(
        "process_time",
        "process_time_ns",
        "thread_time",
        "thread_time_ns",
        "clock_gettime",
        "clock_gettime_ns",
    ),
)


class Sources:
    """Writes a record for each call that is watched."""

    def __init__(self) -> None:
        self._writer: Any = None
        self._counts: dict[str, int] = {}
        self._busy = False
        self.call: Any = None
        """The last call of the system's generator, which may draw several times."""
        self.at: tuple[str, int, str] | None = None
        """The line to tell, where that is not the one that calls now."""
        self._gave_none: dict[tuple[str, int, str], tuple[str, int, str]] = {}
        """By a line that takes a default for None, the one that first gave it None; or another one beside."""

    def note(self, kind: str, name: str, value: Any, at: Any = None) -> Any:
        """Record a value that came from outside, at the program's line that is calling; return the value."""
        # Those that seed are few, and come after many draws where a program seeds late.
        counted = "seed" if is_seed(kind, name) else kind
        count = self._counts.get(counted, 0)
        if self._busy or count >= MOST:
            return value
        self._busy = True
        try:
            place = at or self.at or place_of(kind, 2)
            if place[0]:
                self._counts[counted] = count + 1
                shown = repr(value)
                gave = self._who_gave_none(place, counted) if kind in MAY_SEED else NOBODY
                self.write(
                    {
                        "k": "source",
                        "kind": kind,
                        "name": name,
                        "value": hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:32],
                        "shown": shown[:60],
                        "place": [*place, text(place)],
                        "for": [*gave, text(gave) if gave[0] else ""],
                    }
                )
        finally:
            self._busy = False
        return value

    def told_beside(self, place: tuple[str, int, str], beside: tuple[str, int, str]) -> None:
        """Tell another line beside one that takes a value, as the one that made what draws there."""
        if beside[:2] != place[:2]:
            self._gave_none[place] = beside

    def _who_gave_none(self, place: tuple[str, int, str], kind: str) -> tuple[str, int, str]:
        if place not in self._gave_none:
            self._gave_none[place] = NOBODY
            with suppress(Exception):  # whatever the program's objects are: this only reads them
                is_seed = kind in ("seed", "entropy")
                self._gave_none[place] = missing_seeds.defaulted_at(place, is_seed=is_seed) or NOBODY
        return self._gave_none[place]

    @contextmanager
    def told_where_left_out(self, frame: Any) -> Iterator[None]:
        """Tell the caller's line, and the one that seeds beside it, where the caller gave no seed."""
        before = self.at
        left_out = missing_seeds.left_out_at(frame)
        if left_out is not None:
            self.told_beside(left_out, of_frame(frame))
        self.at = left_out or before
        try:
            yield
        finally:
            self.at = before

    def call_of(
        self,
        kind: str,  # noqa: ARG002 -- an experiment asks for it
        label: str,  # noqa: ARG002 -- as above
        inner: Callable[..., Any],
        given: tuple[Any, ...],
        named: Any,
    ) -> Any:
        """Call what is watched; an experiment calls it in another way."""
        return inner(*given, **named)

    def content(self, path: str) -> None:
        """Record what a file holds that the program is about to read."""
        if self._busy:
            return
        self._busy = True
        try:
            if os.path.getsize(path) > MOST_CONTENT or not os.path.isfile(path):  # noqa: PTH113, PTH202
                return
            with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is not imported for this
                digest = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            return
        finally:
            self._busy = False
        kind = "machine" if path in MACHINE else "content"
        self.note(kind, f"what was read from {path[-100:]}", digest)

    def script(self, path: str) -> None:
        """Record what the lines of a shell script draw."""
        for number, drawn, line in commands.drawn_in(path):
            value = os.urandom(8).hex()
            self.write(
                {
                    "k": "source",
                    "kind": "entropy",
                    "name": f"{drawn} in a command",
                    "value": value,
                    "shown": value,
                    "place": [path[-300:], number, "", line],
                    "for": [*NOBODY, ""],
                }
            )

    def write(self, record: dict[str, Any]) -> None:
        """Write a record into this process's file."""
        from .writing import shared  # noqa: PLC0415 -- json is imported by what needs it

        shared().write(record)

    def ended(self) -> None:
        """Write what the program's text says that may be it, where no trace of torch does."""
        if "torch" not in sys.modules or "-" not in os.environ.get("REPROBUILD_TWICE_TRACE", ""):
            from .writing import shared  # noqa: PLC0415 -- as above

            hints.write(shared())

    def watch(self, owner: Any, names: tuple[str, ...], kind: str, shown: str = "") -> None:
        """Replace functions of a module by ones that record what they give to the program itself."""
        for name in names:
            inner = getattr(owner, name, None)
            if callable(inner):
                label = f"{shown or getattr(owner, '__name__', '')}.{name}"
                setattr(owner, name, self.wrapped(inner, label, kind))

    def wrapped(self, inner: Callable[..., Any], label: str, kind: str) -> Callable[..., Any]:
        """Return a function that records what it gives to the program, or what it is seeded with."""
        in_place = label.endswith("shuffle")

        @functools.wraps(inner)
        def wrapper(*arguments: Any, **keywords: Any) -> Any:
            library = inside(sys._getframe(1), kind)
            if library is None:
                return inner(*arguments, **keywords)
            # A clock in a library is the time that an archive holds.
            told = "stamp" if library and kind == "clock" else kind
            if is_seed(kind, label):
                with self.told_where_left_out(sys._getframe(1)):
                    result = self.call_of(told, label, inner, arguments, keywords)
                    self.note(kind, label + library, seeded_with(*arguments, *keywords.values()))
                return result
            result = self.call_of(told, label, inner, arguments, keywords)
            if told not in ("seed", "draw"):
                return self.note(told, label + library, result)
            given = list(arguments[-1][:64]) if in_place and arguments else result
            self.note(kind, label + library, given)
            return result

        return wrapper


def _temporary_names(sources: Sources, module: Any) -> None:
    """Watch what draws a name, also where the name is the file's or folder's that comes back."""
    sources.watch(module, ("mkdtemp", "mkstemp", "mktemp"), "name")
    made, opened = module.TemporaryDirectory.__init__, module.NamedTemporaryFile

    @functools.wraps(made)
    def init(self: Any, *arguments: Any, **keywords: Any) -> None:
        if not is_users(sys._getframe(1).f_code.co_filename):
            made(self, *arguments, **keywords)
            return
        sources.call_of("name", "tempfile.TemporaryDirectory", made, (self, *arguments), keywords)
        sources.note("name", "tempfile.TemporaryDirectory", self.name)

    @functools.wraps(opened)
    def named(*arguments: Any, **keywords: Any) -> Any:
        if not is_users(sys._getframe(1).f_code.co_filename):
            return opened(*arguments, **keywords)
        result = sources.call_of("name", "tempfile.NamedTemporaryFile", opened, arguments, keywords)
        sources.note("name", "tempfile.NamedTemporaryFile", result.name)
        return result

    module.TemporaryDirectory.__init__, module.NamedTemporaryFile = init, named


def install(watcher: Watcher, sources: Sources) -> None:
    """Watch what is there, and what is imported later."""
    sources.watch(time, CLOCKS, "clock")
    sources.watch(os, ("times",), "clock")
    sources.watch(os, ("getpid", "getppid"), "process")
    sources.watch(os, ("getloadavg",), "machine")
    sources.watch(os, ("urandom", "getrandom"), "entropy")
    _listings(sources)
    _addresses(sources)
    generators.install(watcher, sources)
    sources.watch(os.path, ("getmtime", "getctime", "getatime"), "mtime", "os.path")
    orders.install(watcher, sources)
    time_limits.install(watcher, sources)
    watcher.after("duckdb", queries.watch)
    watcher.after("uuid", lambda module: sources.watch(module, ("uuid1", "uuid4"), "entropy"))
    watcher.after(
        "secrets",
        lambda module: sources.watch(module, ("token_bytes", "token_hex", "randbelow", "choice"), "entropy"),
    )
    watcher.after("tempfile", functools.partial(_temporary_names, sources))
    watcher.after("torch", lambda module: sources.watch(module, ("seed", "manual_seed"), "seed"))
    watcher.after("torch", functools.partial(libraries.torch_generators, sources))
    libraries.install(watcher, sources)
    watcher.after("torch", functools.partial(gpu_states.watch, sources.watch))
    sys.addaudithook(functools.partial(_audit, sources))
    for path in commands.parents_scripts():
        sources.script(path)
    atexit.register(sources.ended)


def _listings(sources: Sources) -> None:
    listing, scanning = os.listdir, os.scandir

    @functools.wraps(listing)
    def listdir(*arguments: Any) -> Any:
        return sources.note("listing", "os.listdir", listing(*arguments))

    @functools.wraps(scanning)
    def scandir(*arguments: Any) -> Any:
        if not (arguments and isinstance(arguments[0], int)):
            sources.note("listing", "os.scandir", listing(*arguments))
        return sources.call_of("listing", "os.scandir", scanning, arguments, {})

    setattr(os, "listdir", listdir)  # noqa: B010 -- these have many types
    setattr(os, "scandir", scandir)  # noqa: B010


def _addresses(sources: Sources) -> None:
    import builtins  # noqa: PLC0415

    address, hashed = builtins.id, builtins.hash

    def id(value: Any, /) -> int:  # noqa: A001 -- it takes that one's place
        if not is_users(sys._getframe(1).f_code.co_filename):
            return address(value)
        found = sources.call_of("address", "id", address, (value,), {})
        return int(sources.note("address", "id", found))

    def hash(value: Any, /) -> int:  # noqa: A001
        if not is_users(sys._getframe(1).f_code.co_filename):
            return hashed(value)
        found = sources.call_of("address", "hash", hashed, (value,), {})
        return int(sources.note("address", "hash", found))

    builtins.id, builtins.hash = id, hash


_COMMAND_OF = {"subprocess.Popen": 1, "os.system": 0, "os.exec": 1}
"""Which argument of an event is a command."""


def _audit(sources: Sources, event: str, arguments: tuple[Any, ...]) -> None:
    if event in _COMMAND_OF:
        _started(sources, event, arguments)
    elif event != "open" or not isinstance(arguments[0], str):
        return
    elif arguments[0] in ("/dev/urandom", "/dev/random", "/dev/hwrng"):
        sources.note("entropy", f"open {arguments[0]}", os.urandom(8))  # as what is read, others each time
    elif arguments[0] in MACHINE:
        sources.content(arguments[0])
    elif is_programs(arguments[0]):
        sources.note("file", "open", arguments[0])
        if arguments[0].endswith(".sql"):
            library_hints.read_sql(arguments[0])
        if not isinstance(arguments[1], str):
            return
        if set(arguments[1]) & set("wax+"):
            sources.note("written", arguments[0][-100:], "")
        else:
            sources.content(arguments[0])


def _started(sources: Sources, event: str, arguments: tuple[Any, ...]) -> None:
    """Record what a command draws, and the script that it is."""
    command = arguments[_COMMAND_OF[event]] or ()
    drawn = commands.drawn_by(command) if event != "os.exec" else ""
    if drawn:
        sources.note("entropy", f"{drawn} in a command", os.urandom(8))
    for path in commands.scripts(command):
        sources.script(path)
    if event == "subprocess.Popen":
        _unrecorded(sources, arguments[3])


def _unrecorded(sources: Sources, env: Any) -> None:
    """Say where a process is started with variables that lack the recorder's."""
    place = here(2, imports=False)
    if env is None or not place[0] or os.path.exists(settings.path()):  # noqa: PTH110 -- as above
        return
    if not {"REPROBUILD_TWICE", b"REPROBUILD_TWICE"} & {*env}:
        told = {"k": "hint", "what": hints.UNRECORDED, "place": [*place, text(place)], "for": [*NOBODY, ""]}
        sources.write(told)


_OTHERS = (
    "/proc/",
    "/sys/",
    "/dev/",
    "/usr/",
    "/etc/",
    "/run/reprobuild/",
    os.environ.get("REPROBUILD_TWICE", "/proc/"),
)


def is_programs(path: str) -> bool:
    """Whether a file is the program's own: not one of Python's, of the system's, of the recorder's, or a
    temporary one.
    """
    return is_users(path) and not path.startswith(_OTHERS) and not path.startswith("/tmp/")  # noqa: S108 -- not used
