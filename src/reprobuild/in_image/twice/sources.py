"""Records, for a trace, what a program takes from outside of its own computation.

Clocks, process numbers, addresses, random draws of Python and NumPy, seeds, the order of a folder's entries,
opened files. Of calls that stand in libraries only draws and seeds count, each at the program's line that led
there, and the time in an archive. Each has its value's digest.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from .places import here, is_users, text
from .watching import Watcher

_SEEDED_STATE = re.compile(r"RandomState\(\s*[^)\s]")

MOST_CONTENT = 16 << 20
"""Bytes of a file whose content is told."""
MOST = 20_000
"""Records of one kind in a process."""

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
DRAWS = (
    *("random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle", "gauss"),
    *("normalvariate", "getrandbits", "randbytes", "betavariate", "expovariate", "triangular", "seed"),
)


class Sources:
    """Writes a record for each call that is watched."""

    def __init__(self) -> None:
        self._writer: Any = None
        self._counts: dict[str, int] = {}
        self._busy = False
        self.call: Any = None
        """The last call of the system's generator, which may draw several times."""

    def note(self, kind: str, name: str, value: Any) -> None:
        """Record a value that came from outside, at the program's line that is calling."""
        count = self._counts.get(kind, 0)
        if self._busy or count >= MOST:
            return
        self._busy = True
        try:
            place = here(2, imports=False)
            if place[0]:
                self._counts[kind] = count + 1
                shown = repr(value)
                self.write(
                    {
                        "k": "source",
                        "kind": kind,
                        "name": name,
                        "value": hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:32],
                        "shown": shown[:60],
                        "place": [*place, text(place)],
                    }
                )
        finally:
            self._busy = False

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
        self.note("content", f"what was read from {path[-100:]}", digest)

    def write(self, record: dict[str, Any]) -> None:
        """Write a record into this process's file."""
        from .writing import shared  # noqa: PLC0415 -- json is imported by what needs it

        shared().write(record)

    def watch(self, owner: Any, names: tuple[str, ...], kind: str, shown: str = "") -> None:
        """Replace functions of a module by ones that record what they give to the program itself."""
        for name in names:
            inner = getattr(owner, name, None)
            if callable(inner):
                label = f"{shown or getattr(owner, '__name__', '')}.{name}"
                setattr(owner, name, self._wrapped(inner, label, kind))

    def _wrapped(self, inner: Callable[..., Any], label: str, kind: str) -> Callable[..., Any]:
        in_place = label.endswith("shuffle")

        @functools.wraps(inner)
        def wrapper(*arguments: Any, **keywords: Any) -> Any:
            result = inner(*arguments, **keywords)
            inside = _inside(sys._getframe(1), kind)
            if inside is not None:
                given = result
                if kind == "seed" or label.endswith((".seed", ".default_rng", ".manual_seed")):
                    given = _given(*arguments, *keywords.values())
                elif in_place and arguments:
                    given = list(arguments[-1][:64])
                # A clock in a library is the time that an archive holds.
                self.note("stamp" if inside and kind == "clock" else kind, label + inside, given)
            return result

        return wrapper


_BESIDE = ("tempfile", "uuid", "secrets", "multiprocessing", "random", "reprobuild_twice", "importlib")
"""Libraries whose draws are told by what they are for, or come to nothing."""
_ARCHIVES = ("gzip", "tarfile", "zipfile")


def _inside(frame: Any, kind: str) -> str | None:
    """Say in which line of a library a call stands; empty: in the program; None: it does not count."""
    if is_users(frame.f_code.co_filename):
        return ""
    module = str(frame.f_globals.get("__name__", ""))
    counts = kind in ("draw", "seed", "entropy") and not module.startswith(_BESIDE)
    if counts or (kind == "clock" and module in _ARCHIVES):
        return f" in {module[:80]}:{frame.f_lineno}"
    return None


def _numpy_generator(sources: Sources, module: Any) -> None:
    """Watch the draws from NumPy's own generator, which libraries take as an object.

    Its class is in C, so one below it takes its place, with the same bits to draw from.
    """
    mtrand = module.mtrand
    own = mtrand._rand
    kind: Any = type("RandomState", (type(own),), {"__module__": type(own).__module__})
    for name in dir(type(own)):
        if name[0] != "_" and name not in ("get_state", "set_state", "seed"):
            inner = getattr(type(own), name)
            setattr(kind, name, sources._wrapped(inner, f"numpy.random.{name}", "draw"))
    watched = kind(own._bit_generator)
    mtrand._rand = watched
    for owner in (module, mtrand):
        for name, value in list(vars(owner).items()):
            if getattr(value, "__self__", None) is own:
                setattr(owner, name, getattr(watched, name))
    sources.watch(module, ("seed", "default_rng"), "draw", "numpy.random")


def _given(*values: Any) -> tuple[Any, ...]:
    """Return what a generator is seeded with; without a seed another value in each run, as the system's."""
    chosen = tuple(value for value in values if value is not None)
    return chosen or ("none given", os.urandom(8))


def _python_generators(sources: Sources, module: Any) -> None:
    """Watch the draws of Python's generators, and those that a program makes itself."""
    sources.watch(module, DRAWS, "draw")
    made, seeded = module.Random.__init__, module.Random.seed

    @functools.wraps(made)
    def init(self: Any, *seed: Any) -> None:
        made(self, *seed)
        if is_users(sys._getframe(1).f_code.co_filename) and not isinstance(self, module.SystemRandom):
            sources.note("seed", "random.Random", _given(*seed))

    @functools.wraps(seeded)
    def reseed(self: Any, *seed: Any, **named: Any) -> None:
        seeded(self, *seed, **named)
        if is_users(sys._getframe(1).f_code.co_filename):
            sources.note("seed", "random.Random.seed", _given(*seed[:1], *named.values()))

    module.Random.__init__, module.Random.seed = init, reseed
    for name in ("random", "getrandbits", "randbytes"):
        inner = vars(module.SystemRandom).get(name)
        if inner is not None:
            setattr(module.SystemRandom, name, _of_system(sources, name, inner, module.__file__))


def _temporary_names(sources: Sources, module: Any) -> None:
    """Watch what draws a name, also where the name is the file's or folder's that comes back."""
    sources.watch(module, ("mkdtemp", "mkstemp", "mktemp"), "name")
    made, opened = module.TemporaryDirectory.__init__, module.NamedTemporaryFile

    @functools.wraps(made)
    def init(self: Any, *arguments: Any, **keywords: Any) -> None:
        made(self, *arguments, **keywords)
        if is_users(sys._getframe(1).f_code.co_filename):
            sources.note("name", "tempfile.TemporaryDirectory", self.name)

    @functools.wraps(opened)
    def named(*arguments: Any, **keywords: Any) -> Any:
        result = opened(*arguments, **keywords)
        if is_users(sys._getframe(1).f_code.co_filename):
            sources.note("name", "tempfile.NamedTemporaryFile", result.name)
        return result

    module.TemporaryDirectory.__init__, module.NamedTemporaryFile = init, named


def _torch_generators(sources: Sources, module: Any) -> None:
    """Watch how generators of torch's that a program makes itself are seeded.

    Their class cannot be changed, so one below it takes its place, of which all generators are instances.
    """
    base = module.Generator

    class Kind(type(base)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, base)

    class Generator(base, metaclass=Kind):  # type: ignore[misc, valid-type]
        def manual_seed(self, seed: int) -> Any:
            if is_users(sys._getframe(1).f_code.co_filename):
                sources.note("seed", "torch.Generator.manual_seed", _given(seed))
            return super().manual_seed(seed)

        def seed(self) -> Any:
            if is_users(sys._getframe(1).f_code.co_filename):
                sources.note("seed", "torch.Generator.seed", _given())
            return super().seed()

    # By which it is pickled.
    Generator.__module__, Generator.__qualname__ = module.__name__, "Generator"
    module.Generator = Generator


def _of_system(sources: Sources, name: str, inner: Callable[..., Any], own: str) -> Callable[..., Any]:
    @functools.wraps(inner)
    def wrapper(*arguments: Any) -> Any:
        result = inner(*arguments)
        frame, call = sys._getframe(1), None
        while frame.f_back is not None and frame.f_code.co_filename == own:
            frame, call = frame.f_back, frame
        # randrange draws again until a number fits, another number of times in each run.
        if call is not None and call is sources.call:
            return result
        sources.call = call
        line = text((frame.f_code.co_filename, frame.f_lineno or 0, ""))
        inside = _inside(frame, "entropy")
        # NumPy's RandomState(SEED) draws first, and forgets that when it takes the seed.
        if inside is not None and not _SEEDED_STATE.search(line):
            sources.note("entropy", f"random.SystemRandom.{name}{inside}", result)
        return result

    return wrapper


def install(watcher: Watcher) -> None:
    """Watch what is there, and what is imported later."""
    sources = Sources()
    sources.watch(time, CLOCKS, "clock")
    sources.watch(os, ("times",), "clock")
    sources.watch(os, ("getpid", "getppid"), "process")
    sources.watch(os, ("getloadavg",), "machine")
    sources.watch(os, ("urandom", "getrandom"), "entropy")
    _listings(sources)
    _addresses(sources)
    watcher.after("random", functools.partial(_python_generators, sources))
    watcher.after("numpy.random", functools.partial(_numpy_generator, sources))
    watcher.after("uuid", lambda module: sources.watch(module, ("uuid1", "uuid4"), "entropy"))
    watcher.after(
        "secrets",
        lambda module: sources.watch(module, ("token_bytes", "token_hex", "randbelow", "choice"), "entropy"),
    )
    watcher.after("tempfile", functools.partial(_temporary_names, sources))
    watcher.after("torch", lambda module: sources.watch(module, ("seed", "manual_seed"), "seed"))
    watcher.after("torch", functools.partial(_torch_generators, sources))
    sys.addaudithook(functools.partial(_audit, sources))


def _listings(sources: Sources) -> None:
    listing, scanning = os.listdir, os.scandir

    @functools.wraps(listing)
    def listdir(*arguments: Any) -> Any:
        result = listing(*arguments)
        sources.note("listing", "os.listdir", result)
        return result

    @functools.wraps(scanning)
    def scandir(*arguments: Any) -> Any:
        result = scanning(*arguments)
        if not (arguments and isinstance(arguments[0], int)):
            sources.note("listing", "os.scandir", listing(*arguments))
        return result

    setattr(os, "listdir", listdir)  # noqa: B010 -- these have many types
    setattr(os, "scandir", scandir)  # noqa: B010


def _addresses(sources: Sources) -> None:
    import builtins  # noqa: PLC0415

    address, hashed = builtins.id, builtins.hash

    def id(value: Any, /) -> int:  # noqa: A001 -- it takes that one's place
        found = address(value)
        if is_users(sys._getframe(1).f_code.co_filename):
            sources.note("address", "id", found)
        return found

    def hash(value: Any, /) -> int:  # noqa: A001
        found = hashed(value)
        if is_users(sys._getframe(1).f_code.co_filename):
            sources.note("address", "hash", found)
        return found

    builtins.id, builtins.hash = id, hash


_DRAWING = re.compile(r"\bshuf\b|\$\{?RANDOM\b|/dev/u?random\b|\bsort (?:-\w+ )*-\w*R\b|\bopenssl rand\b")
_SEEDED = re.compile(r"--random-source|\bRANDOM=\d")


def drawn_by(command: Any) -> str:
    """Return what a command, as text or words, draws by from the system's generator; empty: nothing known."""
    words = [command] if isinstance(command, (str, bytes)) else list(command)
    line = " ".join(os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike)))
    found = _DRAWING.search(line)
    return found[0] if found and not _SEEDED.search(line) else ""


def _audit(sources: Sources, event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.system"):
        drawn = drawn_by(arguments[1 if event == "subprocess.Popen" else 0] or ())
        if drawn:
            sources.note("entropy", f"{drawn} in a command", os.urandom(8))
        return
    if event != "open" or not isinstance(arguments[0], str):
        return
    if arguments[0] in ("/dev/urandom", "/dev/random", "/dev/hwrng"):
        sources.note("entropy", f"open {arguments[0]}", os.urandom(8))  # as what is read, others each time
    elif is_programs(arguments[0]):
        sources.note("file", "open", arguments[0])
        if not isinstance(arguments[1], str):
            return
        if set(arguments[1]) & set("wax+"):
            sources.note("written", arguments[0][-100:], "")
        else:
            sources.content(arguments[0])


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
