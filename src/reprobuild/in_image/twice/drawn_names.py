"""Keeps names that a program draws or is given, other ones in each run: of processes, runs, files, ports.

One that another thread than the main one draws has a kind of its own: which of them comes first is not the
program's choice.
"""

from __future__ import annotations

import functools
import os
import sys
from _thread import get_ident

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

    from .watching import Watcher

MOST_NAMES = 2000
_LEAST_BITS = 20
"""Of a number that is drawn as a name."""
_MOST_BYTES = 64
"""Of such a number."""
_LEAST_ALPHABET, _MOST_ALPHABET = 16, 256
"""Different characters from which a name is drawn: hexadecimal digits at least."""
_SMALL = 999
"""Numbers of processes up to this may be results, too."""
_RUN_NAMES = {
    "mlflow.utils.name_utils": ("_generate_random_name", "_generate_unique_integer_id"),
    "coolname.impl": ("generate_slug",),
}
"""What draws a name for a run, of words or digits."""
_BY_TURN = ("uuids", "drawn names", "drawn words", "temporary names")
"""Kinds that the main thread draws in the same order in each run."""
_names: dict[str, list[str]] = {}
_drawn: list[str] = []
"""Single characters that the system's generator chose."""
_words: list[str] = []
"""The last word that the system's generator chose: with the next one it may be a run's name."""
_main = [get_ident()]


def add(kind: str, text: str) -> None:
    """Keep a name."""
    if kind in _BY_TURN and get_ident() != _main[0]:
        kind = f"threads' {kind}"
    found = _names.setdefault(kind, [])
    if len(found) < MOST_NAMES and text and text[:200] not in found[-4:]:
        found.append(text[:200])


def recent(kind: str, most: int) -> list[str]:
    """Return the last names of a kind."""
    return _names.get(kind, [])[-most:]


def table() -> dict[str, list[str]]:
    """Return the names by their kinds."""
    if _drawn:
        add("drawn names", "".join(_drawn)[:200])
    return {kind: list(names) for kind, names in list(_names.items())}


def forget() -> None:
    """Forget those of another process."""
    _names.clear()
    _drawn.clear()
    _words.clear()
    _main[:] = [get_ident()]


class Instead:
    """Takes the place of a function in C: a class does not bind it, and it is pickled by its name."""

    def __init__(self, inner: Any, act: Any) -> None:
        functools.update_wrapper(self, inner)
        self._inner, self._act = inner, act

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the function, and act on what it gives."""
        return self._act(self._inner(*arguments, **keywords))

    def __reduce__(self) -> str:
        """Return the name of the function in its module."""
        return str(getattr(self, "__name__", ""))


def watch(owner: Any, name: str, kind: str, shown: Any = str) -> None:
    """Keep what a function gives as a name of a kind; ``shown`` makes a text of it."""
    inner = getattr(owner, name, None)
    if inner is None:
        return

    def act(result: Any) -> Any:
        add(kind, shown(result))
        return result

    def method(*arguments: Any) -> Any:
        return act(inner(*arguments))

    setattr(owner, name, method if isinstance(owner, type) else Instead(inner, act))


def _secrets(module: Any) -> None:
    for name in ("token_hex", "token_urlsafe"):
        watch(module, name, "drawn names")


def _identifiers(module: Any) -> None:
    """Matplotlib hashes identifiers in a picture with a UUID, where ``svg.hashsalt`` gives it no salt."""
    inner = module.RendererSVG._make_id

    @functools.wraps(inner)
    def make_id(self: Any, *given: Any) -> Any:
        result = inner(self, *given)
        if module.mpl.rcParams["svg.hashsalt"] is None:
            add("drawn names", str(result))
        return result

    module.RendererSVG._make_id = make_id


def _is_alphabet(population: Any) -> bool:
    """Return whether its characters are enough for a name: bases of DNA, or ten digits, may be a result."""
    if type(population) not in (str, list, tuple) or len(population) > _MOST_ALPHABET:
        return False
    characters = {each for each in population if type(each) is str and len(each) == 1}
    return len(characters) >= _LEAST_ALPHABET


def _system_random(module: Any) -> None:
    """A program may write what the system's generator drew as a number, with any base."""
    inner = module.SystemRandom.getrandbits

    @functools.wraps(inner)
    def getrandbits(self: Any, bits: int) -> Any:
        result = inner(self, bits)
        if bits >= _LEAST_BITS:
            add("drawn numbers", f"{result:0{(bits + 3) // 4}x}")
            add("drawn numbers", f"{result}")
        return result

    module.SystemRandom.getrandbits = getrandbits
    chosen, several = module.SystemRandom.choice, module.SystemRandom.choices

    @functools.wraps(chosen)
    def choice(self: Any, seq: Any) -> Any:
        result = chosen(self, seq)
        if isinstance(result, str) and len(result) == 1:
            if _is_alphabet(seq) and len(_drawn) < 100 * MOST_NAMES:
                _drawn.append(result)
        elif isinstance(result, str) and result.isalpha() and result.isascii():
            before, _words[:] = _words[-1:], [result]
            for between in "_-" if before else "":
                add("drawn words", f"{before[0]}{between}{result}")
        return result

    @functools.wraps(several)
    def choices(self: Any, population: Any, *arguments: Any, **keywords: Any) -> Any:
        result = several(self, population, *arguments, **keywords)
        if _is_alphabet(population):
            add("drawn names", "".join(result))
        return result

    module.SystemRandom.choice, module.SystemRandom.choices = choice, choices


def _socket(module: Any) -> None:
    inner = module.socket.getsockname

    def getsockname(self: Any) -> Any:
        result = inner(self)
        if isinstance(result, tuple) and len(result) > 1:
            add("ports", str(result[1]))
        return result

    accepted = module.socket.accept

    def accept(self: Any) -> Any:
        result = accepted(self)
        if isinstance(result[1], tuple) and len(result[1]) > 1:
            add("clients' ports", str(result[1][1]))
        return result

    module.socket.getsockname, module.socket.accept = getsockname, accept
    watch(module, "gethostname", "host names")


def _pool_threads(module: Any) -> None:
    """Keep the names of a pool's threads: which of them gets a task is not the program's choice."""
    inner = module._worker

    @functools.wraps(inner)
    def worker(*arguments: Any) -> Any:
        name = module.threading.current_thread().name
        # A prefix that the program chose freely may also be the name of a result.
        if any(word in name.lower() for word in ("thread", "pool", "worker")):
            add("pool workers", name)
        return inner(*arguments)

    module._worker = worker


def _pool_processes(module: Any) -> None:
    """Keep the name of a process of a pool, as of its threads."""
    inner = module._process_worker

    @functools.wraps(inner)
    def worker(*arguments: Any) -> Any:
        add("pool workers", sys.modules["multiprocessing.process"].current_process().name)
        return inner(*arguments)

    module._process_worker = worker


def _threads(module: Any) -> None:
    """Keep the numbers that the system gives threads, of those that are asked for.

    Each thread asks for its own when it begins: of many threads these would be all the numbers of a range,
    and a result may be one of them.
    """
    of_thread, of_this = module.Thread.native_id, module.get_native_id

    def told(number: int | None) -> int | None:
        if number is not None and number > _SMALL:
            add("thread numbers", f"{number}")
        return number

    @functools.wraps(of_this)
    def get_native_id() -> Any:
        found = of_this()
        return found if sys._getframe(1).f_globals is vars(module) else told(found)

    module.get_native_id = get_native_id
    module.Thread.native_id = property(lambda self: told(of_thread.fget(self)), doc=of_thread.__doc__)


def install(watcher: Watcher) -> None:
    """Watch what is there, and what is imported later."""
    if (parent := os.getppid()) > _SMALL:  # a shell's, which may print it
        add("parents' process numbers", f"{parent}")
    watch(os, "getpid", "process numbers")
    watch(os, "getppid", "process numbers")
    watcher.after("threading", _threads)
    watch(os, "urandom", "drawn numbers", lambda drawn: drawn.hex() if len(drawn) <= _MOST_BYTES else "")
    watcher.after("random", _system_random)
    for name in ("uuid1", "uuid4"):
        watcher.after("uuid", functools.partial(watch, name=name, kind="uuids"))
    watcher.after("tempfile", lambda module: watch(module._RandomNameSequence, "__next__", "temporary names"))
    watcher.after("secrets", _secrets)
    watcher.after("concurrent.futures.thread", _pool_threads)
    for module in ("concurrent.futures.process", "joblib.externals.loky.process_executor"):
        watcher.after(module, _pool_processes)
    watcher.after("socket", _socket)
    watcher.after("matplotlib.backends.backend_svg", _identifiers)
    for module, names in _RUN_NAMES.items():
        for name in names:
            watcher.after(module, functools.partial(watch, name=name, kind="drawn names"))
