"""Keeps what differs in each run by its nature: times, process numbers, drawn names, ports, addresses.

Written once, when the process ends, into a file beside its records. The outside holds a difference in the
program's text against it; what it does not explain is a result.
"""

from __future__ import annotations

import atexit
import functools
import math
import os
import time
from _thread import RLock, start_new_thread

from . import (
    commands,
    drawn_names,
    gpu_states,
    hashes,
    library_formats,
    library_times,
    measured,
    own_memory,
    pace,
    printed,
    serializers,
    time_travel,
    writers,
)
from .drawn_names import Instead
from .watching import Watcher, warn
from .writing import identity

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

FORMAT = 3
CLOCKS = tuple(
    name + suffix for name in ("time", "perf_counter", "monotonic", "clock_gettime") for suffix in ("", "_ns")
)
USED = tuple(name + suffix for name in ("process_time", "thread_time") for suffix in ("", "_ns"))
"""Clocks that begin with the program: what they show is a duration."""
_STATISTICS = ("mean", "fmean", "stdev", "pstdev", "variance", "pvariance", "geometric_mean", "harmonic_mean")


def _measure(
    owner: Any, names: tuple[str, ...], *, instant: bool = False, faster: pace.Pace | None = None
) -> None:
    for name in names:
        inner = getattr(owner, name, None)
        if callable(inner):
            shown = faster.of(name) if faster is not None else None
            # In C: it is no frame of its own.
            of = functools.partial(measured.of, instant=instant, faster=shown)
            setattr(owner, name, _measuring(inner, of) if isinstance(owner, type) else Instead(inner, of))


def _measuring(inner: Any, of: Any) -> Any:
    @functools.wraps(inner)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        return of(inner(*arguments, **keywords))

    return wrapper


def _gather(module: Any, names: tuple[str, ...]) -> None:
    for name in names:
        if hasattr(module, name):
            setattr(module, name, _Gathering(getattr(module, name)))


class _Gathering(Instead):
    """Takes the place of a function that makes one number of several."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, None)

    def __call__(self, values: Any, *arguments: Any, **keywords: Any) -> Any:
        values = values if isinstance(values, (int, float, list, tuple)) else list(values)
        return measured.gathered(values, self._inner(values, *arguments, **keywords))


def _pool(module: Any) -> None:
    """A pool ends its workers by SIGTERM once it has what they computed."""
    inner = module.worker

    @functools.wraps(inner)
    def worker(*arguments: Any, **keywords: Any) -> Any:
        import signal  # noqa: PLC0415 -- only here
        import threading  # noqa: PLC0415 -- it is there already

        alone = threading.current_thread() is threading.main_thread()  # those of a ThreadPool are not
        if alone and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            _write_at_signal(signal)
        return inner(*arguments, **keywords)

    module.worker = worker


def _write_at_signal(signal: Any) -> None:
    """Write when SIGTERM comes, in a thread of its own.

    A handler of Python's would do so too late: after what a worker waits for, as the pool's lock that nobody
    gives back (https://docs.python.org/3/library/signal.html#execution-of-python-signal-handlers).
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    owner = os.getpid()
    waits = [True]

    def ended(number: int, _: Any) -> None:
        # asyncio has a descriptor of its own, and a program may close all that it does not know.
        if signal.set_wakeup_fd(-1) != writer or os.getpid() != owner or not waits:
            write()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def wait() -> None:
        try:
            while os.read(reader, 1)[0] != signal.SIGTERM:
                pass
        except (OSError, IndexError):
            waits.clear()
            return
        write()
        os.kill(owner, signal.SIGKILL)

    signal.signal(signal.SIGTERM, ended)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    start_new_thread(wait, ())


def _logging(module: Any) -> None:
    """A record's times and numbers are written by ``%``, and its milliseconds are a plain number."""
    import re  # noqa: PLC0415 -- logging has imported it

    inner, time_of = module.PercentStyle._format, module.Formatter.formatTime
    make = module.Logger.makeRecord
    pieces_of = re.compile(r"(%[-#0 +]*\d*(?:\.\d+)?[hlL]?[a-zA-Z%])")
    fields = re.compile(r"%\((?:msecs|relativeCreated)\)[-+ #0-9.]*[dfiosgeuFGE]")

    def _format(self: Any, record: Any) -> str:
        for each in fields.findall(self._fmt):
            measured.note("text", each % record.__dict__)
        return str(inner(self, record))

    @functools.wraps(time_of)
    def format_time(self: Any, record: Any, datefmt: Any = None) -> Any:
        if not datefmt:
            measured.note("text", f"{int(record.msecs):03d}")
        return time_of(self, record, datefmt)

    @functools.wraps(make)
    def make_record(self: Any, *given: Any, **named: Any) -> Any:
        if len(given) > 5 and type(given[4]) is str and type(given[5]) is tuple:
            _, _, file, line, message, values = given[:6]
            pieces = [part for part in pieces_of.split(message) if part]
            _note_message(pieces, values, file, line)
        return make(self, *given, **named)

    module.PercentStyle._format, module.Formatter.formatTime = _format, format_time
    module.Logger.makeRecord = make_record


def _note_message(pieces: list[str], values: tuple[Any, ...], file: str, line: int) -> None:
    """Keep what ``%`` will make of measured numbers, and the message in which they will stand."""
    fields = [at for at, piece in enumerate(pieces) if piece[0] == "%" and piece != "%%"]
    if len(fields) != len(values):
        return  # a width is given as well, or it fails
    found = ["%" if piece == "%%" else piece for piece in pieces]
    known, marks = True, 0
    for number, (at, value) in enumerate(zip(fields, values)):
        told = measured.plain(value) if pieces[at][-1] in "diufFeEgG" else None
        if told is not None and abs(told) < 1e300:  # an infinite one is no whole number
            text = pieces[at] % told
            measured.note_at((f"{file}:{line}", number, "text"), "text", text.strip(), file, line)
            found[at] = f"{printed.MARKS[0]}{text}{printed.MARKS[1]}"
            marks += 1
        elif type(value) in (str, int, float):
            try:
                found[at] = pieces[at] % value
            except (TypeError, ValueError, OverflowError):
                known = False
        else:  # its text may take long, or change something
            known = False
    message = "".join(found)
    if known and marks and len(message) <= printed.LONGEST and message.count(printed.MARKS[0]) == marks:
        measured.note_at((f"{file}:{line}", 0, "message"), "message", message, file, line)


def _datetime(faster: pace.Pace | None, module: Any) -> None:
    """Its class is in C and takes no attributes, so an entry of its dictionary is replaced."""
    kind = module.datetime
    entries = time_travel.moments_of(kind)
    for name in ("now", "utcnow"):  # its old entries stay alive, as the interpreter's cache needs them
        entries[name] = classmethod(_moment(entries[name], kind.timestamp, faster))
    if not hasattr(kind.now, "__func__"):  # looked up before: it is in the interpreter's cache
        time_travel.changed(kind)


def _moment(inner: Any, seconds: Any, faster: pace.Pace | None) -> Any:
    @functools.wraps(inner)
    def shown(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        result = inner.__get__(None, cls)(*arguments, **keywords)
        try:
            if faster is not None:
                result = faster.moved(result, seconds(result))
            measured.note("moment", seconds(result))
        except Exception:  # noqa: BLE001, S110 -- of the program's time zone: not noted, it is a result
            pass
        return result

    return shown


def _listener(module: Any) -> None:
    """It writes what other processes log, in the order in which that comes."""
    inner = module.QueueListener.handle

    @functools.wraps(inner)
    def handle(self: Any, record: Any) -> Any:
        result = inner(self, record)
        if getattr(record, "process", None) not in (None, os.getpid()):
            writers.pass_on(self.handlers)
        return result

    module.QueueListener.handle = handle


def _psutil(faster: pace.Pace | None, module: Any) -> None:
    # What the machine has is as it is: a program may take as much as is free.
    _measure(module, ("virtual_memory", "swap_memory", "cpu_percent", "cpu_times", "disk_usage"))
    _measure(module, ("boot_time",), instant=True)
    _measure(module.Process, ("memory_info", "memory_percent", "cpu_percent", "cpu_times"), faster=faster)
    _measure(module.Process, ("create_time",), instant=True)


def _torch(faster: pace.Pace | None, module: Any) -> None:
    if hasattr(module.serialization, "add_safe_globals"):  # a number in a checkpoint is pickled as float(…)
        module.serialization.add_safe_globals([float, int])
    gpu_states.measure(_measure, module, faster)


def _memory() -> list[tuple[int, int]]:
    """Return where this process has memory, small gaps included."""
    found: list[list[int]] = []
    with open("/proc/self/maps") as file:  # noqa: PTH123 -- pathlib is not imported for this
        for line in file:
            start, _, end = line.split(" ", 1)[0].partition("-")
            if found and int(start, 16) - found[-1][1] < 1 << 28:
                found[-1][1] = int(end, 16)
            else:
                found.append([int(start, 16), int(end, 16)])
    return [(start, end) for start, end in found[:64]]


_forked: set[str] = set()
_written: list[int] = []
_writing = [RLock()]


def write() -> None:
    """Write what was kept; a process writes once."""
    with _writing[0]:
        if _written != [os.getpid()]:
            _written[:] = [os.getpid()]
            _write()


def _write() -> None:
    try:
        import json  # noqa: PLC0415 -- only now, or each process would import it

        sites = [
            [each.kind, each.file, each.line, each.count, each.first, list(each.last)]
            for each in list(measured.sites.values())  # a thread may write while the program goes on
        ]
        who = identity()
        table = {
            "format": FORMAT,
            "forked": bool(_forked),
            "writer": writers.table(),
            "process": [who["worker"], who["name"], *who["argv"][:4]],
            "zone": -time.timezone,
            "memory": _memory(),
            "names": drawn_names.table(),
            "sites": sites,
        }
        path = f"{os.environ['REPROBUILD_TWICE']}/{time.clock_gettime_ns(time.CLOCK_MONOTONIC):020d}"
        path = f"{path}-{os.getpid()}"
        # Whole or not at all: a process may be killed meanwhile, as those of a pool are.
        with open(f"{path}.unfinished", "w") as file:  # noqa: PTH123 -- as above
            json.dump(table, file)
        os.replace(f"{path}.unfinished", f"{path}.evidence")  # noqa: PTH105 -- as above
    except Exception as error:  # noqa: BLE001 -- the program must not fail because of the recorder
        warn("times and names are not recorded", error)


def _before(owner: Any, name: str) -> None:
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def wrapper(*arguments: Any) -> Any:
        if name == "_exit":  # with which multiprocessing's processes end, too
            library_formats.write()
        write()
        return inner(*arguments)

    setattr(owner, name, wrapper)


def install(watcher: Watcher) -> None:
    """Follow what is there, and what is imported later."""
    library_formats.install(watcher)
    time_travel.install(watcher)
    faster = pace.chosen()
    if faster is not None:
        commands.replace({"date": commands.faster_date(faster.dates, faster.times)})
        own_memory.install(faster.times)
    _measure(time, CLOCKS, instant=True, faster=faster)
    _measure(time, USED, faster=faster)
    _measure(os, ("times",), faster=faster)
    _measure(os, ("getloadavg",))
    drawn_names.install(watcher)
    hashes.install(watcher, faster)
    for name in ("_exit", "execv", "execve"):
        _before(os, name)
    _gather(math, ("fsum",))
    watcher.after("statistics", functools.partial(_gather, names=_STATISTICS))
    watcher.after("multiprocessing.pool", _pool)
    watcher.after("resource", functools.partial(_measure, names=("getrusage",), faster=faster))
    watcher.after("psutil", functools.partial(_psutil, faster))
    watcher.after("tracemalloc", functools.partial(_measure, names=("get_traced_memory",), faster=faster))
    serializers.install(watcher)
    watcher.after("logging", _logging)
    watcher.after("logging.handlers", _listener)
    watcher.after("datetime", functools.partial(_datetime, faster))
    watcher.after(
        "asyncio.base_events", lambda module: _measure(module.BaseEventLoop, ("time",), instant=True)
    )
    library_times.install(watcher)
    watcher.after("torch", functools.partial(_torch, faster))
    writers.install()
    printed.install(watcher)
    atexit.register(write)
    os.register_at_fork(after_in_child=_forget, after_in_parent=functools.partial(_forked.add, "forked"))


def _forget() -> None:
    _writing[:] = [RLock()]  # a thread of the parent's may have had it
    _forked.clear()
    drawn_names.forget()
    measured.sites.clear()
    measured.recent.clear()
    measured.room[:] = [measured.MOST_VALUES]
