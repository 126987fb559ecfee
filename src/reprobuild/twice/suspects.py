"""What may be the cause of a difference and can be pinned for an experiment, the likeliest first. Pure.

`in_image.twice.pins` does it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import known_causes
from .causes import Cause
from .external_values import Candidate, is_drawn_name, is_seed, is_unseeded
from .known_causes import Remedy
from .records import ProgramLine

_LINES = (
    "draw",
    "entropy",
    "process",
    "machine",
    "address",
    "name",
    "listing",
    "stamp",
    "seed",
    "order",
    "timeout",
    "mtime",
    "computed",
    "memory",
)
"""Kinds of values that can be pinned at one line."""
GENERATORS = {
    "random": "Python's generator",
    "numpy.random": "NumPy's generator",
    "torch": "torch's generator",
}

_PRINTS = re.compile(r"\bprint\(|\blog(?:ger|ging)?\.")
_THREADS = ("threads", 0, "")
_COMMANDS = ("commands", 0, "")
DRAWS = ("draw", 0, "")
EACH_DRAW = "each draw"
"""As in `in_image.twice.pins`."""
_IN_EACH_THREAD = "all that is drawn seeded, in each thread by itself"
DUCKDB = ("duckdb", 0, "")
_DATES = ("dates", 0, "")
_BACKGROUND = ("background", 0, "")
_NEWEST = ("newest", 0, "")
_ONE_JOB = ("make", 0, "")
_NAMES = ("mktemp", 0, "")
_BEFORE_SHELLS = {_COMMANDS, _DATES, _BACKGROUND, _NEWEST, _ONE_JOB, _NAMES}
"""What has to be changed before a script is started."""
LAUNCH = "REPROBUILD_TWICE_LAUNCH"
"""The setting of a run whose command a Python starts, which the recorder is in: also for a shell script."""
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    **dict.fromkeys(("NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1"),
}
_ONE_OF_POLARS = {"POLARS_MAX_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A possible cause that an experiment can pin."""

    what: str
    """What was done, for a reader: ``with … ``."""
    pins: tuple[tuple[str, int, str], ...]
    """What is pinned, and the line and file; line 0 of no file: everywhere."""
    candidates: tuple[Candidate, ...] = ()
    """What it would prove to be the cause."""
    remedy: Remedy | None = None
    faithful: bool = True
    """Whether it is the same in each run for certain: of another kind, runs that part say nothing."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What does it, where no pin does or not alone."""
    sure: bool = True
    """Whether it may be the cause of what parts first, where something else parts still."""

    @property
    def settings(self) -> dict[str, str]:
        """The variables of a run with it pinned."""
        if not self.pins:
            return dict(self.variables)
        text = "\n".join(f"{kind}\t{line}\t{file}" for kind, line, file in self.pins)
        threads = ONE_THREAD if _THREADS in self.pins else {}
        return {
            "REPROBUILD_TWICE_PIN": text,
            **self.variables,
            **threads,
            **({LAUNCH: "1"} if _BEFORE_SHELLS & {*self.pins} else {}),
        }


def suspects(cause: Cause) -> list[Suspect]:
    """Return the suspects, the likeliest first."""
    found: list[Suspect] = []
    given = [each for each in cause.candidates if each.kind != "hint"]
    clocks = tuple(each for each in given if each.kind == "clock")
    for each in given:
        if each.kind == "clock" and each is clocks[0]:
            found.append(of_clocks(clocks))
        elif each.name.endswith(" in a command"):
            pin, told = _of_command(each.name)
            same = next((at for at, known in enumerate(found) if told and known.pins == (pin,)), None)
            if same is not None:
                found[same] = replace(found[same], candidates=(*found[same].candidates, each))
            elif told:
                found.append(Suspect(told, (pin,), (each,), each.remedy, faithful=pin in _CERTAIN))
        elif each.kind in _LINES and not _is_of_queue(each):
            remedy = each.remedy
            if is_seed(each) and not is_unseeded(each):
                remedy = known_causes.SOURCES["seed"]
            # A library that computes in threads of its own may go on as it did.
            more = tuple(_that_walk(each, cause.candidates))
            is_computed = each.kind == "computed"
            # Which of equal rows one engine of Polars takes is decided by the order in which threads end.
            variables = _ONE_OF_POLARS if is_computed else {}
            found.append(
                Suspect(_told(each), (_pin(each),), (each, *more), remedy, not is_computed, variables)
            )
    drawn = tuple(each for each in given if each.kind in ("draw", "seed"))
    if len(drawn) > 1:  # one generator that several lines draw from, perhaps in several threads
        found.insert(1, Suspect(_IN_EACH_THREAD, (DRAWS,), drawn, faithful=False))
    if plain := tuple(each for each in drawn if not is_seed(each)):
        found.insert(2, of_draws(plain, each_time=True))
    if cause.kind == "random":
        pins = (("all of torch", 0, ""),)
        drops = cause.remedy in (known_causes.DROPS, known_causes.STAYS)
        remedy = cause.remedy if drops else known_causes.RANDOM
        found.append(Suspect("torch's generator seeded at the start", pins, (), remedy))
    found += _of_hints(cause, given)
    found += _of_workers(cause, given)
    found = _each_once(found)
    has_given = any(map(_is_given, found))
    return sorted(
        found,
        key=lambda each: (
            _THREADS in each.pins[1:],
            is_seldom(each),
            each.pins == (_BACKGROUND,),  # which changes more than what depends on it
            2 if has_given and _only_draws(each) else int(_is_given(each)),
            not _is_without_seed(each),
            is_printed(each),
            each.remedy not in known_causes.SPECIAL,
        ),
    )


def _each_once(found: Sequence[Suspect]) -> list[Suspect]:
    """Return suspects, those of one line that are pinned in one way as one."""
    each: dict[tuple[object, ...], Suspect] = {}
    for suspect in found:
        key = suspect.pins, tuple(suspect.variables.items()), suspect.faithful
        before = each.get(key)
        more = [one for one in suspect.candidates if before is not None and one not in before.candidates]
        each[key] = replace(before, candidates=(*before.candidates, *more)) if before is not None else suspect
    return list(each.values())


def _that_walk(candidate: Candidate, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield the lines below that may go through the set of tasks which a line waited for."""
    if candidate.kind == "order" and candidate.name.endswith(".wait"):
        for each in candidates:
            below = each.place.line - candidate.place.line if each.place.file == candidate.place.file else 0
            if known_causes.of_hint(each.name) is known_causes.SET and 0 < below <= NEAR:
                yield each


def _of_workers(cause: Cause, given: Sequence[Candidate]) -> Iterator[Suspect]:
    """Yield the generators without a seed as one worker alone has them: which of several draws may vary."""
    unseeded = {
        (each.place.file, each.place.line)
        for each in cause.candidates
        if each.name == known_causes.UNSEEDED_HINT
    }
    for each in given:
        if each.kind == "entropy" and (each.place.file, each.place.line) in unseeded:
            what = f"{_told(each)}, and one worker in each pool"
            yield Suspect(what, (_pin(each), _THREADS), (each,), known_causes.SOURCES["draw"], faithful=False)


_FIXED_BYTES = "a fixed source of random bytes for shuf and sort"
_OF_COMMANDS = (
    ("date", _DATES, "a fixed time for date"),
    ("ls ", _NEWEST, "the entries that ls gives sorted by name"),
    ("&", _BACKGROUND, "one process after the other in a script"),
    ("make", _ONE_JOB, "one job of make at a time"),
    ("mktemp", _NAMES, "numbers in the names that mktemp makes"),
    ("xargs", _COMMANDS, "one process at a time of xargs"),
    ("shuf", _COMMANDS, _FIXED_BYTES),
    ("sort", _COMMANDS, _FIXED_BYTES),
)
"""How the name of a command begins, what is pinned of it, and the words for that."""
_CERTAIN = (_DATES, _ONE_JOB, _NAMES)
"""Of these, what is the same in each run for certain."""


def _of_command(name: str) -> tuple[tuple[str, int, str], str]:
    """Return what is pinned of a command, and the words for it; empty: nothing."""
    found = ((pin, told) for begins, pin, told in _OF_COMMANDS if name.startswith(begins))
    return next(found, (_COMMANDS, ""))


def _of_hints(cause: Cause, given: Sequence[Candidate]) -> list[Suspect]:
    """Return what the program's text, or a race, makes suspect."""
    found: dict[tuple[tuple[str, int, str], ...], Suspect] = {}
    names = [each.name for each in cause.candidates if each.kind == "hint"]
    likely = (
        *(known_causes.NUMBERED, known_causes.TIED, known_causes.OF_A_SET),
        *(known_causes.CHECKED, known_causes.FILLED),
    )
    names.sort(key=lambda name: (_rank(known_causes.of_hint(name)), [*likely, name].index(name)))
    for name in dict.fromkeys(("threads" if cause.kind in ("race", "operation") else "", *names)):
        one = _of_hint(name)
        if one is None:
            continue
        before = found[one.pins].candidates if one.pins in found else ()
        lines = [each for each in cause.candidates if each.name == name and each not in before]
        found[one.pins] = replace(found.get(one.pins, one), candidates=(*before, *lines))
    threads = found.get((_THREADS,))
    if threads is not None:
        # What came in time, where the program waits for others for some time, or what these draw in turn.
        waits = [each for each in cause.candidates if each.kind == "timeout"]
        drawn = [each for each in given if each.kind == "draw" and not is_seed(each)]
        came = [each for each in given if each.kind == "order" and each.name.endswith("Queue.get")]
        remedy = known_causes.SHARED_GENERATOR if drawn and not waits else threads.remedy
        # In what threads run it is sure that they share what they draw from.
        shared = [each for each in threads.candidates if each.name == known_causes.DRAWN_IN_TURN]
        in_threads = {(each.place.file, each.place.line) for each in shared}
        sure = [each for each in drawn if (each.place.file, each.place.line) in in_threads] or shared
        proven = tuple(dict.fromkeys((*waits, *sure, *drawn, *threads.candidates)))
        if came and not drawn and not waits and remedy is not known_causes.CONNECTED:
            proven, remedy = tuple(came), known_causes.SOURCES["order"]
        found[threads.pins] = replace(threads, candidates=proven, remedy=remedy)
    return list(found.values())


BY_WORKER = " by a worker"
"""How the recorder ends the name of what a thread or a process of several takes from a queue."""


def _is_of_queue(candidate: Candidate) -> bool:
    """Return whether it is what came from a queue, by an order or in a time that no experiment pins alone."""
    name = candidate.name.removesuffix(BY_WORKER)
    return candidate.kind in ("order", "timeout") and name.endswith("Queue.get")


def _rank(remedy: Remedy | None) -> int:
    return _LIKELIEST.index(remedy) if remedy in _LIKELIEST else len(_LIKELIEST)


def is_seldom(suspect: Suspect) -> bool:
    """Sort sources that mostly make names behind the others."""
    return any(is_drawn_name(each) or each.kind in ("process", "name") for each in suspect.candidates)


def _is_given(suspect: Suspect) -> bool:
    """Return whether it is a seed that comes from elsewhere: where that is comes before it."""
    return any(is_seed(each) and not is_unseeded(each) for each in suspect.candidates)


def _only_draws(suspect: Suspect) -> bool:
    """Return whether all that it would prove draws: after the seed that differs, where there is one."""
    plain = [each.kind == "draw" and not is_seed(each) for each in suspect.candidates]
    return bool(plain) and (all(plain) or suspect.pins == (DRAWS,))


def _is_without_seed(suspect: Suspect) -> bool:
    """Return whether it is a generator that the program makes and lets the system seed."""
    return bool(suspect.candidates) and all(map(is_unseeded, suspect.candidates))


def is_printed(suspect: Suspect) -> bool:
    """Return whether it is a clock of which a line prints or logs what it shows: mostly that is all."""
    clocks = [each for each in suspect.candidates if each.kind == "clock"]
    return any(_PRINTS.search(each.place.text) for each in clocks)


def of_clocks(clocks: Sequence[Candidate]) -> Suspect:
    """Return some clocks, all frozen."""
    return replace(of_values(clocks, "the clock frozen"), remedy=known_causes.SOURCES["clock"])


def of_values(given: Sequence[Candidate], what: str = "fixed values") -> Suspect:
    """Return some values from outside, all the same in each run."""
    lines = " and ".join(dict.fromkeys(str(each.place) for each in given[:3]))
    more = f" and {len(given) - 3} more places" if len(given) > 3 else ""
    return Suspect(f"{what} at {lines}{more}", tuple(map(_pin, given)), tuple(given))


SEEDED = Suspect(
    "Python's and NumPy's generators seeded at the start",
    tuple((f"all of {name}", 0, "") for name in ("random", "numpy.random")),
)


def of_draws(drawn: tuple[Candidate, ...], *, each_time: bool = False) -> Suspect:
    """Return some lines that draw; ``each_time``: which worker draws how often may depend on time."""
    lines = " and ".join(dict.fromkeys(str(each.place) for each in drawn[:3]))
    more = f" and {len(drawn) - 3} more places" if len(drawn) > 3 else ""
    pins = tuple((EACH_DRAW, *_pin(each)[1:]) if each_time else _pin(each) for each in drawn)
    what = f"the generator seeded before {'each draw at ' if each_time else ''}{lines}{more}"
    return Suspect(what, pins, drawn, known_causes.SOURCES["draw"], faithful=not each_time)


def of_queries(asked_by: Sequence[ProgramLine], candidates: tuple[Candidate, ...]) -> Suspect:
    """Return the queries that some lines ask DuckDB."""
    asks = "asks" if len(asked_by) == 1 else "ask"
    what = f"one thread of DuckDB's for what {' and '.join(map(str, asked_by))} {asks}"
    pins = tuple(("query", each.line, each.file) for each in asked_by)
    return Suspect(what, pins, candidates, candidates[0].remedy)


ADDRESSES = Suspect("the same addresses in each run", (("addresses", 0, ""),), faithful=False)
_OF_HINTS = (
    (known_causes.SET, ADDRESSES.what, "addresses"),
    (known_causes.BATCHES, "batches in the order in which they were asked for", "batches"),
    (known_causes.TIMER, "no timer that interrupts it", "timers"),
    (known_causes.TRIALS, "one trial at a time", "trials"),
    (known_causes.QUERY, "one thread of DuckDB's", "duckdb"),
    (known_causes.TIES, "one thread of DuckDB's", "duckdb"),
    (known_causes.SQL_CLOCK, "a fixed time in the place of the databases' clock", "sql clock"),
    (known_causes.SQL_DRAW, "what databases draw from a seed, in one thread", "sql draws"),
    (known_causes.COMPILED_DRAW, "Numba's generators seeded at the start", "numba"),
    (known_causes.TRAINED, "one thread of gensim's", "gensim"),
    (known_causes.WRITTEN, "one thread of Arrow's", "arrow"),
    (known_causes.SHUFFLED, "rows that dask moves by tasks", "dask"),
    (known_causes.SHARED_GENERATOR, "one thread, and one worker in each pool", "threads"),
    (known_causes.COUNTER, "one thread, and one worker in each pool", "threads"),
    (known_causes.RACE, "one thread, and one worker in each pool", "threads"),
    (known_causes.THREADS, "one thread, and one worker in each pool", "threads"),
    (known_causes.FULL, "one thread, and one worker in each pool", "threads"),
    (known_causes.CONNECTED, "one thread, and one worker in each pool", "threads"),
    (known_causes.FIRST, "one thread, and one worker in each pool", "threads"),
    (known_causes.TAKEN, "one thread, and one worker in each pool", "threads"),
)
_LIKELIEST = (
    *(known_causes.SHARED_GENERATOR, known_causes.FULL, known_causes.CONNECTED),
    *(known_causes.RACE, known_causes.COUNTER),
    *(known_causes.THREADS, known_causes.FIRST, known_causes.TAKEN),
)
"""Of what one thread at a time changes."""
_UNFAITHFUL = ("addresses", "threads")


def _of_hint(name: str) -> Suspect | None:
    remedy = known_causes.of_hint(name)
    for module, told in known_causes.LATE_SEEDS.items():
        if name == told:  # that module alone: another generator may be the cause
            what = f"{GENERATORS[module]} seeded at the start"
            return Suspect(what, ((f"all of {module}", 0, ""),), (), remedy)
    for known, what, pin in _OF_HINTS:
        if remedy is known:
            return Suspect(what, ((pin, 0, ""),), (), remedy, faithful=pin not in _UNFAITHFUL)
    return None


def _pin(candidate: Candidate) -> tuple[str, int, str]:
    return candidate.kind, candidate.place.line, candidate.place.file


NEAR = 12
"""Lines below."""
_TOLD = {
    "seed": "the seed 0 at",
    "listing": "the entries sorted at",
    "order": "the results in the order of the tasks at",
    "timeout": "as long a wait as it takes at",
    "stamp": "a fixed time at",
    "mtime": "a fixed time at",
    "address": "numbers in place of addresses at",
    "memory": "zeros in the new array at",
    "computed": "Polars in one thread, its generator seeded and its rows sorted at",
}


def _told(candidate: Candidate) -> str:
    """Say what is pinned."""
    function = candidate.name.partition(" in ")[0]
    told = _TOLD.get("seed" if is_seed(candidate) else candidate.kind, f"fixed values of {function} at")
    if candidate.kind == "draw" and not is_seed(candidate):
        told = f"{GENERATORS.get(function.rpartition('.')[0], 'the generator')} seeded before"
    return f"{told} {candidate.place}"
