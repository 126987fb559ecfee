"""What an experiment pins is the same in each run."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reprobuild.in_image.twice import pins
from reprobuild.in_image.twice.pins import Pins, vary_listings
from reprobuild.twice.recorded_run import HowToRun, between, run_once
from reprobuild.twice.suspects import Suspect
from support.twice import PROGRAMS, recorded, scratch_below


def printed(tmp_path: Path, settings: Mapping[str, str]) -> list[bytes]:
    """What a program prints of what it takes from outside, in two runs."""
    program = recorded(sys.executable, [str(PROGRAMS / "without_torch.py"), "drawn"])
    outputs = []
    for run in (1, 2):
        folder = tmp_path / f"{len(settings)} {run}"
        folder.mkdir()
        ran = program(folder, {"REPROBUILD_TWICE_EVERY": "1", **settings}, 30)
        assert (ran.status, ran.stderr) == (0, b"")
        outputs.append(ran.stdout)
    return outputs


KINDS = (
    "draw",
    "entropy",
    "process",
    "address",
    "name",
    "listing",
    "seed",
    "order",
    "mtime",
    "clock",
    "commands",
)


def test_what_is_pinned_is_the_same_in_each_run(tmp_path: Path) -> None:
    one, other = ([line.split(b" ", 1) for line in text.splitlines()] for text in printed(tmp_path, {}))
    differ = {x[0].decode() for x, y in zip(one, other, strict=True) if x != y}
    assert differ >= set(KINDS) - {"listing", "order"}  # whose order is mostly the same
    chosen = "\n".join(f"{kind}\t0\t" for kind in KINDS)
    one, other = (
        [line.split(b" ", 1) for line in text.splitlines()]
        for text in printed(tmp_path, {"REPROBUILD_TWICE_PIN": chosen})
    )
    assert one == other


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_of_any_two_entries_of_a_folder_the_other_comes_first_when_listings_vary(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever order the file system gives: the newest first on a tmpfs, that of a hash on ext4."""
    for name in order:
        (tmp_path / name).touch()
    entries = {entry.name: entry for entry in os.scandir(tmp_path)}
    monkeypatch.setattr(os, "listdir", lambda _: list(order))
    monkeypatch.setattr(os, "scandir", lambda _: nullcontext(iter([entries[name] for name in order])))
    vary_listings()
    assert os.listdir(tmp_path) == list(order)[::-1]  # noqa: PTH208 -- it is what varies
    assert [entry.name for entry in os.scandir(tmp_path)] == list(order)[::-1]


def test_pythons_own_generator_is_pinned_where_a_library_takes_it_as_an_object(tmp_path: Path) -> None:
    program = tmp_path / "drawn.py"
    program.write_text("import random\nprint(random._inst.sample(range(10**9), 2), random.random())\n")
    outputs = set[bytes]()
    for run in ("one", "other"):
        (tmp_path / run).mkdir()
        settings = {"REPROBUILD_TWICE_EVERY": "1", "REPROBUILD_TWICE_PIN": "draw\t0\t"}
        ran = recorded(sys.executable, [str(program)])(tmp_path / run, settings, 30)
        assert (ran.status, ran.stderr) == (0, b"")
        outputs.add(ran.stdout)
    assert len(outputs) == 1


def test_torchs_generator_is_pinned_where_the_program_lets_the_system_seed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds: list[int] = []
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(manual_seed=seeds.append))
    assert Pins("seed\t0\t").call_of("seed", "torch.seed", lambda: 17, (), {}) == 0
    assert seeds == [0]


def test_a_frozen_clock_shows_a_day_after_the_dates_in_a_programs_data() -> None:
    frozen = Pins("clock\t0\t")
    assert frozen.note("clock", "time.time", 0.0) > datetime(2030, 1, 1, tzinfo=UTC).timestamp()
    assert frozen.note("clock", "time.time_ns", 0) > datetime(2030, 1, 1, tzinfo=UTC).timestamp() * 1e9


class Loader:
    def __init__(self, data: object, *, in_order: bool = True) -> None:
        self.in_order = in_order


class Study:
    jobs = 0

    def optimize(self, func: object, n_trials: int | None = None, *, n_jobs: int = 1) -> None:
        self.jobs = n_jobs


def test_what_runs_at_once_or_for_a_time_runs_in_turn_and_to_its_end() -> None:
    module = SimpleNamespace(DataLoader=Loader, Study=Study, setitimer=signal.setitimer, alarm=signal.alarm)
    inits = Loader.__init__, Study.optimize
    try:
        pins._in_order(module)
        pins._one_trial(module)
        pins._no_timers(module)
        assert Loader([], in_order=False).in_order
        study = Study()
        study.optimize(len, 3, n_jobs=4)
        assert study.jobs == 1
        assert (module.setitimer(0, 0.01), module.alarm(1)) == ((0.0, 0.0), 0)
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        Loader.__init__, Study.optimize = inits  # type: ignore[method-assign]


def test_what_a_program_prints_of_a_frozen_clock_is_a_time_still(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import time\nt = time.perf_counter()\ntime.sleep(0.01)\nprint(f'{time.perf_counter() - t:.6f} s')\n"
    )
    run = recorded(sys.executable, [str(program)])
    settings = {"REPROBUILD_TWICE_EVERY": "1", "REPROBUILD_TWICE_PIN": f"clock\t4\t{program}"}
    runs = [run_once(run, settings, HowToRun(), scratch_below(tmp_path)) for _ in range(2)]
    assert runs[0].stdout != runs[1].stdout
    assert between(*runs)[:2] == (None, [])


SCRIPT = """
seq 40 | sort -R | head -n 3
seq 40 | shuf -n 3
seq 12 | xargs -P 4 -n 1 sh -c 'test $(($0 % 4)) = 1 && sleep 0.1; echo $0'
"""


def test_commands_of_a_shell_script_are_pinned_though_no_python_starts_them(tmp_path: Path) -> None:
    (tmp_path / "program.sh").write_text(SCRIPT)
    run = recorded("/bin/sh", [str(tmp_path / "program.sh")])
    settings = Suspect("", (("commands", 0, ""),)).settings
    given = {"REPROBUILD_TWICE_EVERY": "1"}
    one, other = (
        run_once(run, {**given, **settings}, HowToRun(), scratch_below(tmp_path)).stdout for _ in range(2)
    )
    assert one[:18] == other[:18]
    assert one[6:18] == tuple(map(str, range(1, 13)))
    as_they_are = run_once(run, given, HowToRun(), scratch_below(tmp_path)).stdout
    assert as_they_are[:6] != one[:6]


def test_the_newest_entries_that_ls_gives_are_pinned(tmp_path: Path) -> None:
    made = "touch -d @9 b; touch -d @8 -- -t; touch -d @7 c"
    script = f"{made}; ls -t; ls -1t; ls --sort=time | head -1; ls -l | wc -l\n"
    (tmp_path / "program.sh").write_text(script)
    run = recorded("/bin/sh", [str(tmp_path / "program.sh")])
    settings = Suspect("", (("newest", 0, ""),)).settings
    given = {"REPROBUILD_TWICE_EVERY": "1", "LC_ALL": "C"}
    as_it_is, pinned = (
        run_once(run, {**given, **more}, HowToRun(), scratch_below(tmp_path)).stdout
        for more in ({}, settings)
    )
    assert as_it_is[:6] == ("b", "-t", "c", "b", "-t", "c")
    assert pinned[:6] == ("-t", "b", "c", "-t", "b", "c")
    assert pinned[-2:] == as_it_is[-2:]


TASKS = """
import asyncio, sys
async def work(number):
    await asyncio.sleep(0.03 if number == 1 else 0.01)
    return number
async def main():
    waiting, ended = {asyncio.create_task(work(number)) for number in (1, 2, 3)}, []
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        ended += [task.result() for task in done]
    tasks = [asyncio.create_task(work(number)) for number in (3, 1, 2)]
    done, _ = await asyncio.wait(tasks, timeout=5)
    print(ended, [task.result() for task in done])
asyncio.run(main())
"""


def test_the_tasks_that_asyncio_waits_for_come_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TASKS)
    run = recorded(sys.executable, [str(program)])
    pins = "\n".join(f"order\t{line}\t{program}" for line in (9, 12))
    settings = {"REPROBUILD_TWICE_EVERY": "1", "REPROBUILD_TWICE_PIN": pins}
    pinned = run_once(run, settings, HowToRun(), scratch_below(tmp_path))
    assert pinned.stdout[0].endswith("[3, 1, 2]"), pinned.stdout
    again = run_once(run, settings, HowToRun(), scratch_below(tmp_path))
    assert again.stdout == pinned.stdout


def test_what_a_thread_draws_does_not_depend_on_when_others_draw() -> None:
    """Nor on the state of the program's own generator, which stays."""
    drawn: dict[str, list[float]] = {}

    def draws(chosen: Pins, name: str) -> None:
        value = chosen.call_of("draw", "random.random", random.random, (), {})
        drawn.setdefault(name, []).append(value)

    for order in ("abba", "baab"):
        chosen = Pins("draw\t0\t")
        state = random.getstate()
        for name in order:
            thread = threading.Thread(target=draws, args=(chosen, name), name=name)
            thread.start()
            thread.join()
        assert random.getstate() == state
    for values in drawn.values():
        assert values[:2] == values[2:]
    assert drawn["a"] != drawn["b"]


def test_a_generator_is_seeded_before_each_draw_of_a_line() -> None:
    """And the program's own keeps its state, of Python's and of an object that a method is called of."""

    class RandomState(random.Random):
        """As NumPy's watched one, a class below the one in C."""

    class Watched(RandomState):
        pass

    for label, given in (("random.random", ()), ("numpy.random.random", (Watched(5),))):
        inner: Any = random.random if not given else random.Random.random
        states = random.getstate(), [each.getstate() for each in given]
        for kind, alike in (("each draw", True), ("draw", False)):
            chosen = Pins(f"{kind}\t0\t")
            first, second = (chosen.call_of("draw", label, inner, given, {}) for _ in range(2))
            assert (first == second) is alike
            again = Pins(f"{kind}\t0\t").call_of("draw", label, inner, given, {})
            assert again == first
        assert (random.getstate(), [each.getstate() for each in given]) == states


CONNECTIONS = """
import concurrent.futures, multiprocessing, time
from multiprocessing import connection
def work(pipe, number):
    time.sleep((2 - number) / 4)
    for _ in range(2):
        pipe.send(number)
def square(n):
    return n * n
if __name__ == "__main__":
    pipes, ends = [], []
    for number in range(3):
        mine, theirs = multiprocessing.Pipe()
        multiprocessing.Process(target=work, args=(theirs, number)).start()
        pipes.append(mine)
        ends.append(theirs)
    got, most = [], 0
    while len(got) < 6:
        ready = connection.wait(pipes)
        got += [pipe.recv() for pipe in ready[:1]]
        most = max(most, len(ready))
    print(got, most)
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        print(pool.submit(square, 3).result())
"""


def test_connections_are_waited_for_in_turn(tmp_path: Path) -> None:
    """The first one has something last. A pool, which waits so by itself, goes on."""
    program = tmp_path / "program.py"
    program.write_text(CONNECTIONS)
    run = recorded(sys.executable, [str(program)])
    plain = run_once(run, {"REPROBUILD_TWICE_EVERY": "1"}, HowToRun(), scratch_below(tmp_path))
    pin = f"order\t{CONNECTIONS[: CONNECTIONS.index('connection.wait')].count(chr(10)) + 1}\t{program}"
    settings = {"REPROBUILD_TWICE_EVERY": "1", "REPROBUILD_TWICE_PIN": pin}
    pinned = run_once(run, settings, HowToRun(seconds=60), scratch_below(tmp_path))
    assert not plain.stdout[0].startswith("[0, "), plain.stdout  # which of the others is first, load decides
    assert pinned.stdout[:2] == ("[0, 1, 2, 0, 1, 2] 1", "9"), (pinned.stdout, pinned.last)
    workers = plain.evidence.names.get("pool workers", ())
    assert [name for name in workers if name.startswith(("Process-", "ForkProcess-"))], workers


def test_an_object_has_a_number_in_the_place_of_its_address() -> None:
    """Also where it has the address of one that is gone."""

    class Thing:
        pass

    fixed = Pins("address\t0\t")
    numbers = [fixed.call_of("address", "id", id, (Thing(),), {}) for _ in range(50)]
    assert numbers == [16 * number for number in range(1, 51)]
    thing = Thing()
    assert fixed.call_of("address", "hash", hash, (thing,), {}) == fixed.call_of(
        "address", "id", id, (thing,), {}
    )
    text = fixed.call_of("address", "hash", hash, ("text",), {})
    assert text == fixed.call_of("address", "hash", hash, ("text",), {}) != 16 * 51
