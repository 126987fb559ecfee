"""Known causes: why something gives other values, and the remedy, each with its source. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remedy:
    """A known cause: why something does not repeat, the remedy, and the source for both."""

    why: str
    remedy: str
    source: str


UNINITIALISED = Remedy(
    "the memory was read before anything was written into it, and holds what was there before",
    "use torch.zeros, or write every element first; REPROBUILD_FILL=1 fills new memory with NaN",
    "PyTorch's documentation of torch.empty",
)
RANDOM = Remedy(
    "the generator that it draws from was in another state",
    "seed it at the start: torch.manual_seed(SEED), or REPROBUILD_SEED in the image's request",
    "PyTorch's notes on reproducibility",
)
SHARED = Remedy(
    "threads draw from one generator in the order in which they come to it",
    "give each thread, and each DataLoader that a thread reads, a generator of its own",
    "the trace of both runs",
)
DROPPED = "dropout that draws where nothing is trained"
STAYS_ON = "dropout that draws also where the model is in evaluation mode"
UNSEEDED_HINT = "a generator that the system seeds"
"""The recorder's label of a line that may let the system seed a generator."""
ORDER = Remedy(
    "the data came in another order",
    "give the DataLoader a seeded generator (torch.Generator().manual_seed(SEED)), and sort names and sets",
    "PyTorch's notes on reproducibility",
)
OUTSIDE = Remedy(
    "the value did not come from an operation of torch that was recorded",
    (
        "follow this line back: a clock, a process number, a set's order, a file, NumPy, or another thread "
        "gave it"
    ),
    "the trace of both runs",
)
THREADS = Remedy(
    "a thread of the program's own changed what it reads: threads run in another order each time",
    "let one thread do this, or join the threads and add up their results in a fixed order",
    "the trace of both runs",
)
RACE = Remedy(
    "another thread changes it between the reading and the writing, so some changes are lost",
    "hold a lock from the reading to the writing, or let each thread count for itself and add up at the end",
    "Python's documentation of threading.Lock",
)
COUNTER = Remedy(
    "threads take numbers from one counter in the order in which they come to it",
    "number the tasks before threads take them, as enumerate does",
    "the trace of both runs",
)
SHARED_GENERATOR = Remedy(
    "threads draw from one generator, and which of them comes first is another one in each run",
    "give each thread or task a generator of its own, seeded by its number (numpy.random.SeedSequence.spawn)",
    "NumPy's documentation of parallel random number generation",
)
FLOW = Remedy(
    "the program took another branch, or went through something in another order",
    "follow this line back: a set's order, a dictionary filled by threads, or a time limit decides it",
    "the trace of both runs",
)

FULL = Remedy(
    "whether the queue is full depends on how fast another thread takes from it",
    "put, which waits for room, in place of put_nowait; or count what is dropped by steps, not by time",
    "Python's documentation of queue.Queue.put",
)
FIRST = Remedy(
    "several threads or processes put into this queue, and which of them is first is another one in each run",
    "put a number with each, and go through them in the order of these",
    "the trace of both runs",
)
TAKEN = Remedy(
    "several threads take from this queue, and which of them takes what is another one in each run",
    "let no result depend on which thread has a task: give each task a seed and a state of its own",
    "the trace of both runs",
)
QUERY = Remedy(
    "DuckDB computes in several threads, and without ORDER BY its rows come as these end",
    "ORDER BY a key, also in first(…), last(…) and list(…); or SET threads = 1",
    "DuckDB's documentation of order preservation",
)
TIES = Remedy(
    "DuckDB computes in several threads, and rows that a query takes for equal come as these end",
    "ORDER BY a key that no two rows share; or SET threads = 1",
    "DuckDB's documentation of order preservation",
)
SQL_CLOCK = Remedy(
    "a database's clock gives another time in every run",
    "hand in a fixed time as a parameter, in place of 'now' and CURRENT_TIMESTAMP",
    "SQLite's documentation of date and time functions",
)
SQL_DRAW = Remedy(
    "a database draws from a generator of its own, which Python's seeds do not reach",
    "order by a hash of a key, or hand in drawn numbers; DuckDB: SELECT setseed(…), and SET threads = 1",
    "DuckDB's documentation of setseed, SQLite's of random()",
)
OF_QUERIES = (QUERY, TIES, SQL_CLOCK, SQL_DRAW)
COMPILED_DRAW = Remedy(
    "compiled code draws from a generator of Numba's own, which numpy.random.seed outside does not seed",
    "call numpy.random.seed(SEED) in a compiled function, or hand in a numpy.random.Generator",
    "Numba's documentation of random numbers",
)
TRAINED = Remedy(
    "gensim trains in several threads, which change the same vectors in any order",
    "workers=1",
    "gensim's documentation of Word2Vec: seed",
)
SHUFFLED = Remedy(
    "dask's workers append rows to the files of their groups in any order",
    'dask.config.set({"dataframe.shuffle.method": "tasks"}), or sort the rows of each group',
    "dask's documentation of shuffling",
)
WRITTEN = Remedy(
    "Arrow writes batches of rows in several threads, in the order in which these come to it",
    "preserve_order=True, or use_threads=False",
    "Arrow's documentation of pyarrow.dataset.write_dataset",
)
PASSED = Remedy(
    "it computes with the time that passed, which is another one in every run",
    "let each step stand for the same time, as dt = 1 / 60, whatever passed meanwhile",
    "Python's documentation of time",
)
DROPS = Remedy(
    "dropout is on: the model is in training mode where nothing is trained",
    "call the model's eval() before it answers; where dropout is meant to be on, torch.manual_seed(SEED)",
    "PyTorch's documentation of torch.nn.Module.eval",
)
STAYS = Remedy(
    "dropout is on though the model is in evaluation mode",
    "give it the model's mode: a Dropout of __init__, or training=self.training; or torch.manual_seed(SEED)",
    "PyTorch's documentation of torch.nn.functional.dropout",
)
LATE = Remedy(
    "what is drawn before the seed is set comes from a generator that the system seeded",
    "set the seed first",
    "Python's documentation of random.seed",
)
SPECIAL = (LATE, QUERY, TIES, SQL_CLOCK, SQL_DRAW, COMPILED_DRAW, TRAINED, SHUFFLED, WRITTEN)
"""Of what few programs do, and then mostly is the cause."""
CONNECTED = Remedy(
    "clients connect in another order in each run",
    "let each say its number, and go through them in the order of these",
    "the trace of both runs",
)
TIMER = Remedy(
    "how far the program is when the timer ends depends on how fast it runs",
    "count steps in place of a time",
    "Python's documentation of signal.setitimer",
)
TRIALS = Remedy(
    "trials end in another order in each run, and Optuna seeds its sampler anew for each worker",
    "n_jobs=1",
    "Optuna's documentation: How can I obtain reproducible optimization results?",
)
BATCHES = Remedy(
    "with in_order=False a DataLoader gives the batch of the worker that is first",
    "leave in_order at True",
    "PyTorch's documentation of torch.utils.data.DataLoader",
)
SET = Remedy(
    "a set of objects has the order of their addresses, and a set of strings that of the hash seed",
    "sort it: sorted(…, key=…), or use a dict, which keeps the order of insertion",
    "Python's documentation of object.__hash__",
)
HANDED = Remedy(
    "another thread takes this object later, and the program changes it meanwhile",
    "hand over a copy: copy.deepcopy(…), or {name: value.clone() for …} of a state_dict",
    "the trace of both runs",
)
LINE = Remedy(
    "in both runs the same went into this line and another value came out",
    "look at what it calls: seed what draws, sort what has no order, and take no clock and no address",
    "the trace of both runs",
)
BEHIND = Remedy(
    "what went into this line differs by names or times alone, and another value came out",
    LINE.remedy,
    LINE.source,
)
SOURCES: dict[str, Remedy] = {
    "order": Remedy(
        "tasks end in another order in each run",
        "go through them in the order in which they were started: map, imap or gather; or sort by a number",
        "Python's documentation of concurrent.futures",
    ),
    "mtime": Remedy(
        "a file has the time at which the run wrote it",
        "sort by a number in the name, and compute nothing from a file's time",
        "Python's documentation of os.path.getmtime",
    ),
    "clock": Remedy(
        "a clock gives another value in every run",
        "compute nothing from it; for a time limit, count steps instead",
        "Python's documentation of time",
    ),
    "process": Remedy(
        "a process's number is another one in every run",
        "seed with a constant, or with the rank",
        "Python's documentation of os.getpid",
    ),
    "machine": Remedy(
        "it says how busy the machine is",
        "compute nothing from it",
        "Python's documentation of os.getloadavg",
    ),
    "name": Remedy(
        "a temporary name is drawn by the system",
        "compute nothing from it, a seed neither",
        "Python's documentation of tempfile",
    ),
    "entropy": Remedy(
        "it comes from the system's random numbers, which cannot be seeded",
        "draw from a seeded generator",
        "Python's documentation of os.urandom",
    ),
    "listing": Remedy(
        "a file system lists entries in an order of its own",
        "sort them: sorted(os.listdir(…))",
        "Python's documentation of os.listdir",
    ),
    "address": Remedy(
        "an address in memory, and a hash made of one, differ in every run",
        "use a name or a number as the key",
        "Python's documentation of id",
    ),
    "draw": Remedy(
        "this generator was not seeded, or something else drew from it before",
        "seed it: random.seed(SEED), numpy.random.seed(SEED), in a DataLoader's workers by worker_init_fn",
        "PyTorch's notes on reproducibility",
    ),
    "seed": Remedy(
        "a generator was seeded with another value in each run",
        "seed it with a constant",
        "PyTorch's notes on reproducibility",
    ),
    "stamp": Remedy(
        "the archive holds the time at which it was written",
        "give it a fixed time: gzip.GzipFile(mtime=0), ZipInfo(date_time=…) or TarInfo.mtime",
        "Python's documentation of gzip, zipfile and tarfile",
    ),
    "computed": Remedy(
        "from an equal table it gave another one: it keeps no order, or draws from a generator of its own",
        "sort the rows or say maintain_order=True; where it draws, seed=SEED or polars.set_random_seed(SEED)",
        "Polars' documentation of unique, group_by and set_random_seed",
    ),
    "memory": Remedy(
        "the array is not initialized: it has what was in memory before, and not all of it was filled",
        "use numpy.zeros or numpy.full, or fill every element",
        "NumPy's documentation of numpy.empty",
    ),
    "timeout": Remedy(
        "what comes before a time limit depends on how fast the others are",
        "wait for a number of things, not for some time",
        "the trace of both runs",
    ),
    "content": Remedy(
        "the file already differed when the program read it",
        "look at what wrote it: an earlier program, or another process",
        "the trace of both runs",
    ),
    "file": Remedy(
        "other files were opened, or in another order",
        "sort the names before you read",
        "the trace of both runs",
    ),
}

_MADE = Remedy(
    "the generator was made without a seed, so the system seeds it",
    "give it one: default_rng(SEED), RandomState(SEED), Random(SEED)",
    "NumPy's documentation of numpy.random.default_rng",
)
ZERO = Remedy(
    "a seed of 0 counts as none where it is taken for true or false",
    "compare it with None: if seed is not None",
    "Python's documentation of truth value testing",
)
_IN_LIBRARY = Remedy(
    "the library was given no seed, so it takes one from the system",
    "give it one, by its argument seed, random_state or rng",
    "NumPy's documentation of numpy.random.SeedSequence",
)
_OF_LIBRARY = Remedy(
    "the library draws from a generator of its own, which the system seeds",
    "seed that one, as Faker.seed(SEED) does: random.seed and numpy.random.seed do not reach it",
    "Python's documentation of random.Random",
)
_SPACE = Remedy(
    "a space has a generator of its own, which neither numpy.random.seed nor env.reset(seed=SEED) seeds",
    "seed the space: env.action_space.seed(SEED)",
    "Gymnasium's documentation of Space.seed",
)
_NAMED = Remedy(
    "it is drawn by the system, to name something",
    "compute nothing from it, and sort by something else",
    "Python's documentation of uuid",
)


NUMBERED = "rows that a query numbers in no order"
TIED = "rows that a query orders by what may be equal"
OF_A_SET = "the order of a set"
"""Where an order of rows becomes a value."""
LATE_SEEDS = {each: f"a seed of {each} that comes after draws" for each in ("random", "numpy.random")}
CHECKED = "what threads go by that they change meanwhile"
RACED = "what threads read and change while others may change it"
COUNTED = "what threads take in turn from one counter"
FILLED = "what threads fill in the order in which they come to it"
"""Before what they change in any order."""
DRAWN_IN_TURN = "what threads draw from one generator"
_HINTS = {
    RACED: RACE,
    COUNTED: COUNTER,
    OF_A_SET: SET,
    "the order of a set of futures": SET,
    "batches in the order in which workers finish": BATCHES,
    "a timer that interrupts the program": TIMER,
    DRAWN_IN_TURN: SHARED_GENERATOR,
    "trials that run at once": TRIALS,
    "rows that a query gives in no order": QUERY,
    NUMBERED: QUERY,
    TIED: TIES,
    "a set of which the order counts": SET,
    "a draw in code that Numba compiles": COMPILED_DRAW,
    "vectors that threads of gensim's train at once": TRAINED,
    "rows that dask moves by way of a disk": SHUFFLED,
    "rows that threads of Arrow's write in any order": WRITTEN,
    "the clock of a database": SQL_CLOCK,
    DROPPED: DROPS,
    STAYS_ON: STAYS,
    "what a database draws": SQL_DRAW,
    **dict.fromkeys(LATE_SEEDS.values(), LATE),
    "what a full queue does not take": FULL,
    "the order in which others connect": CONNECTED,
    "what comes first from others that put something in": FIRST,
    "which of several threads takes what": TAKEN,
}


def of_hint(name: str) -> Remedy | None:
    """Return what is known about a line of the program's text, by what the recorder calls it."""
    of_threads = "thread" in name or "order in which tasks end" in name
    return _HINTS.get(name, THREADS if of_threads else None)


_OF_DRAWS = (("random.Random.", _OF_LIBRARY), ("gymnasium.spaces.", _SPACE))


def of_source(kind: str, name: str) -> Remedy | None:
    """Return what is known about a value from outside, by its kind and by the function that gave it."""
    function = name.partition(" in ")[0]
    if function.endswith((".default_rng", ".RandomState", "random.Random", ".Generator")):
        return _MADE
    for begins, remedy in _OF_DRAWS if kind == "draw" else ():
        if name.startswith(begins):
            return remedy
    if kind == "entropy" and name.startswith(("uuid.", "secrets.token_")):
        return _NAMED
    for begins, remedy in _OF_COMMANDS:
        if name.startswith(begins):
            return remedy
    if kind == "entropy" and function != name:
        return _COMMAND if name.endswith(" in a command") else _IN_LIBRARY
    return SOURCES.get(kind)


_XARGS = Remedy(
    "the commands run at once and write in the order in which they end",
    "let each write a file of its own, or leave out -P",
    "GNU findutils' documentation of xargs",
)
_BESIDE = Remedy(
    "the script starts commands beside each other, which write in the order in which they end",
    "let each write a file of its own, and join these in a fixed order after wait",
    "GNU Bash's manual on lists of commands",
)
_MAKE = Remedy(
    "make runs recipes at once, and one of them needs or changes what another makes",
    "give its rule the prerequisite that it lacks, and a file of its own to each recipe; or leave out -j",
    "GNU make's manual on parallel execution",
)
_TEMPORARY = Remedy(
    "the name is drawn by the system, and goes into what is made there",
    "work in a folder with a fixed name, or keep its name out: gcc -ffile-prefix-map=FOLDER=.",
    "GNU coreutils' documentation of mktemp, and reproducible-builds.org on build paths",
)
_OF_COMMANDS = (
    *(("ls ", SOURCES["mtime"]), ("xargs", _XARGS), ("&", _BESIDE)),
    *(("make", _MAKE), ("mktemp", _TEMPORARY)),
)
_COMMAND = Remedy(
    "the command draws by the system's random numbers, or a seed from the clock",
    "give it a fixed source: shuf and sort -R --random-source=FILE, RANDOM=SEED, awk: srand(SEED)",
    "GNU coreutils' documentation of random sources, and POSIX on awk",
)
