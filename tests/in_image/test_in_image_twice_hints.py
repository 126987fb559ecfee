"""What the recorder of ``twice`` reads from a program's text."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reprobuild.in_image.twice.hints import BATCHES, SET_MADE, TIMER, TRIALS, UNRECORDED, of_file
from reprobuild.in_image.twice.places import inside
from reprobuild.in_image.twice.sources import Sources
from reprobuild.in_image.twice.sources import _audit as audited
from reprobuild.in_image.twice.thread_hints import CHECKED

FILLED = "what threads fill in the order in which they come to it"
DRAWN = "what threads draw from one generator"
DRAWS = "def build(self, a):\n    r = random.Random(a)\n    self.rng.shuffle(a)\n    return a\n"
TAKEN_FIRST = "what comes first from others that put something in"
WORKER = "t, q = Queue(), Queue()\ndef f():\n    x = t.get()\n    q.put(g(x)); Thread(target=f)\n"
SHARED = "what other processes change meanwhile"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("for x in {1, 2}:\n    pass", [(1, "the order of a set")]),
        ("s = set(a)\nfor x in sorted(s):\n    pass", []),
        (
            "done, left = loop.run_until_complete(asyncio.wait(tasks))\n[t.result() for t in done]",
            [(1, SET_MADE), (2, "the order of a set")],
        ),
        ("for d in asyncio.as_completed(tasks):\n    await d", [(1, "the order in which tasks end")]),
        ("q = mp.Queue()\nq.get()", [(2, TAKEN_FIRST)]),
        (WORKER + "q.get()", [(3, "which of several threads takes what"), (5, TAKEN_FIRST)]),
        (WORKER, [(3, "which of several threads takes what"), (4, FILLED)]),
        (
            (
                "t = Queue()\ndef f():\n    x = t.get()\n    try:\n        out[x] = g(x)\n"
                "    except Error as e:\n        errors.append(e)\nThread(target=f)"
            ),
            [(3, "which of several threads takes what")],
        ),
        (
            "def f(at):\n    x = d.get(at)\n    out[at] = g(x)\nThread(target=f)",
            [(4, "threads that share what they work on")],
        ),
        ("self.q = Queue(4)\nself.q.put_nowait(1)", [(2, "what a full queue does not take")]),
        ("q = asyncio.Queue()\nq.put_nowait(1)", []),
        ("server.accept()", [(1, "the order in which others connect")]),
        ("def f(at):\n    out[at] = g(w)\nThread(target=f)", [(3, "threads that share what they work on")]),
        ("def f(at):\n    out[at] += g(w)\nThread(target=f)", [(2, FILLED)]),
        (
            (
                "def f(self, all):\n    for at in all:\n        if self.n >= self.most:\n            break\n"
                "        self.n += 1\n        self.costs[at] = g(at)\npool.map(self.f, shares)"
            ),
            [(3, CHECKED), (7, "threads that share what they work on")],
        ),
        (
            "def f(self, at):\n    if self.n > 1:\n        g(at)\n    self.n += 1\nThread(target=f)",
            [],
        ),
        ("def f(at):\n    out[at] = g(w)\n    n[0] = at\nThread(target=f)", [(3, FILLED)]),
        (
            "def f(at):\n    stats.update(g(at))\n    sink.write(at)\nThread(target=f)",
            [(2, "what threads change that they share"), (3, FILLED)],
        ),
        ("def f(at):\n    out = {}\n    out[at] = g(w)\nThread(target=f)", []),
        ("class Client(threading.Thread):\n    def run(self):\n        all.append(self)", [(3, FILLED)]),
        (
            "async def ask(case):\n    one = await case()\n    all.append(one)\ngather(*map(ask, cases))",
            [(3, "what tasks fill in the order in which tasks end")],
        ),
        ("async def ask(case):\n    found = []\n    found.append(await case())\nasyncio.gather(ask(c))", []),
        ("async def ask(case, found):\n    found.append(await case())\nasyncio.run(ask(c, all))", []),
        (DRAWS + "with ThreadPoolExecutor() as pool:\n    pool.map(self.build, a)", [(3, DRAWN)]),
        (DRAWS + "list(map(self.build, a))", []),
        (DRAWS.replace("self.rng.", "r.") + "pool.submit(self.build, a)", []),
        ("g = np.random.default_rng()", [(1, "a generator that the system seeds")]),
        ("model.share_memory()", [(1, SHARED)]),
        ("n = mp.Value('i', 0)\nwith n.get_lock():\n    at = n.value\n    n.value += 1", [(3, SHARED)]),
        ("self.a = mp.Array('d', 4)\nself.a[0] = 1\nprint(self.a[0])", [(3, SHARED)]),
        ("config = Config()\nprint(config.value)", []),
        ("os.stat(path).st_mtime", [(1, "the time of a file")]),
        ("db.execute('select * from t ORDER BY\\n random() limit 5')", [(1, "what a database draws")]),
        ("db.execute('select * from t order by random_id')", []),
        ("self.links = set()\nfor x in node.links:\n    pass", [(1, SET_MADE), (2, "the order of a set")]),
        (
            "names: set[str] = field(default_factory=set)\nlist(self.names)",
            [(1, SET_MADE), (2, "the order of a set")],
        ),
        (
            "groups = defaultdict(set)\nfor x in groups[1]:\n    pass",
            [(1, SET_MADE), (2, "the order of a set")],
        ),
        (
            "self.of = {y: set(a) for y in b}\n[x for x in self.of[y]]",
            [(1, SET_MADE), (2, "the order of a set")],
        ),
        ("of = {1: {2}}\nfor x in of.get(1):\n    pass", [(2, "the order of a set")]),
        ("of = [set() for _ in a]\nlist(of[0])", [(1, SET_MADE), (2, "the order of a set")]),
        ("of[y] = set()\nlist(of[0])", [(1, SET_MADE), (2, "the order of a set")]),
        ("of.setdefault(1, set()).add(2)\nlist(of[1])", [(1, SET_MADE), (2, "the order of a set")]),
        ("of = {y: [1] for y in b}\nlist(of[1])", []),
        ("for x in a - {1}:\n    pass", [(1, "the order of a set")]),
        (
            "done, left = await asyncio.wait(tasks)\nfor x in done:\n    pass",
            [(1, SET_MADE), (2, "the order of a set")],
        ),
        ("done, left = wait(futures)\nfor x in done:\n    pass", [(2, "the order of a set of futures")]),
        ("links = []\nfor x in node.links:\n    pass", []),
        ("loader = DataLoader(data, in_order=False)", [(1, BATCHES)]),
        ("loader = DataLoader(data, in_order=True)", []),
        ("study.optimize(f, n_trials=9, n_jobs=2)", [(1, TRIALS)]),
        ("Parallel(n_jobs=2, prefer='threads')(a)", [(1, "threads that share what they work on")]),
        ("Parallel(n_jobs=2, backend='loky')(a)", []),
        ("study.optimize(f, n_trials=9, n_jobs=1)", []),
        (
            "signal.setitimer(REAL, seconds)\nsignal.setitimer(REAL, 0)",
            [(1, TIMER)],
        ),
        ("signal.alarm(3)\nsignal.alarm(0)", [(1, TIMER)]),
        ("for x in", []),
    ],
)
def test_lines_that_may_give_another_order_or_value(
    program: str, expected: list[tuple[int, str]], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(program)
    assert of_file(str(tmp_path / "train.py")) == expected


@pytest.mark.parametrize(
    ("env", "told"), [(None, 0), ({"PATH": "/bin"}, 1), ({"PATH": "/bin", "REPROBUILD_TWICE": "/records"}, 0)]
)
def test_a_process_that_is_not_recorded_is_told(env: dict[str, str] | None, told: int) -> None:
    written: list[dict[str, Any]] = []
    taken = Sources()
    taken.write = written.append  # type: ignore[assignment]
    audited(taken, "subprocess.Popen", ("python3", ["python3", "prepare.py"], None, env))
    assert [record["what"] for record in written] == [UNRECORDED] * told
    assert all(Path(record["place"][0]) == Path(__file__) for record in written)


@pytest.mark.parametrize(
    ("module", "counts"), [("gymnasium.utils.seeding", True), ("numpy.random._pickle", False)]
)
def test_what_a_copied_generator_is_made_with_is_overwritten(module: str, *, counts: bool) -> None:
    frame = SimpleNamespace(
        f_code=SimpleNamespace(co_filename=os.__file__), f_globals={"__name__": module}, f_lineno=3
    )
    assert (inside(frame, "entropy") is not None) is counts
