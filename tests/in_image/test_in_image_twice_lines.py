"""The trace of a program's lines: which statements are recorded, with what, and that it ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reprobuild.in_image.twice.lines import Lines
from reprobuild.twice.line_records import RETURNED, LineRecord, LineStream, read_lines
from reprobuild.twice.recorded_run import RECORDS, RanProgram
from support.twice import recorded

PROGRAM = """\
import os, threading
from multiprocessing import get_context

def add(x, y=1):
    total = x
    total += y
    return total

def numbers():
    for n in range(2):
        yield n

class Box:
    def __init__(self, width):
        self.width = width

    def grow(self):
        self.width += 1

def work(n):
    box = Box(n)
    box.grow()

if __name__ == "__main__":
    items = []
    for n in numbers():
        items.append(add(
            n,
            y=2,
        ))
    thread = threading.Thread(target=work, args=(5,), name="worker")
    thread.start()
    thread.join()
    process = get_context("fork").Process(target=work, args=(6,), name="child")
    process.start()
    process.join()
    try:
        add("a")
    except TypeError:
        items = [0] * 3
    os._exit(0)
"""


def traced(tmp_path: Path, program: str, seconds: float = 30) -> tuple[RanProgram, list[LineStream]]:
    """Run a program with a trace of its lines."""
    path = tmp_path / "program.py"
    path.write_text(program)
    folder = tmp_path / "run"
    folder.mkdir()
    ran = recorded(sys.executable, [str(path)])(folder, {"REPROBUILD_TWICE_LINES": "trace"}, seconds)
    return ran, read_lines(folder / RECORDS)


def test_each_statement_is_recorded_with_what_it_read_and_left(tmp_path: Path) -> None:
    ran, streams = traced(tmp_path, PROGRAM)
    assert (ran.status, ran.stderr) == (0, b"")
    assert [stream.key[2] for stream in streams] == ["MainProcess", "child"]
    main, child = ([(r.thread, r.kind, r.place.line) for r in stream.records] for stream in streams)
    assert [
        line for thread, kind, line in main if thread == "MainThread" and line < 9 and kind != "call"
    ] == [
        *(1, 2, 4),
        *(5, 6, 7) * 2,
        *(5, 6),
    ]
    inner = [(kind, line) for thread, kind, line in main if thread == "worker"]
    assert inner == [
        *(("call", 20), ("call", 14), ("line", 15), ("line", 21)),
        *(("call", 17), ("line", 18), ("line", 22)),
    ]
    assert [(kind, line) for _, kind, line in child if line > 13] == inner
    # What the other process was at when it forked leads to nothing here.
    assert [r.up for r in streams[1].records if (r.place.line, r.kind) == (20, "call")] == [0]


def record(streams: list[LineStream], line: int, kind: str = "line") -> list[LineRecord]:
    return [r for r in streams[0].records if (r.place.line, r.kind) == (line, kind)]


def test_what_a_statement_of_several_lines_and_calls_leaves(tmp_path: Path) -> None:
    _, streams = traced(tmp_path, PROGRAM)
    first, second = record(streams, 27)
    assert (first.end, set(first.before), set(first.after)) == (30, {"items", "n"}, {"items", "n"})
    assert first.before["items"] != first.after["items"][0] == second.before["items"]
    assert first.after["items"][1] == "[2]"
    call = record(streams, 4, "call")[0]
    assert (call.up, {name: shown for name, (_, shown) in call.after.items()}) == (
        first.number,
        {"x": "0", "y": "2"},
    )
    assert record(streams, 7)[0].after[RETURNED][1] == "2"
    assert [r.after["n"][1] for r in record(streams, 26, "branch")] == ["0", "1", "1"]
    assert record(streams, 18)[0].after["self.width"][1] == "6"
    assert record(streams, 40) != []  # after an exception


def test_a_list_that_has_the_address_of_one_that_is_gone_is_another(tmp_path: Path) -> None:
    program = "for n in range(9):\n    x = [n]\n    y = x\n    before = id(x)\n    del x, y\nprint(before)\n"
    _, streams = traced(tmp_path, program)
    assert len({r.after["before"][1] for r in record(streams, 4)}) < 9  # else nothing was shown
    made, given = ([r.objects[name][0] for r in record(streams, line)] for line, name in ((2, "x"), (3, "y")))
    assert made == given
    assert len(set(made)) == 9


@pytest.mark.parametrize(
    "program",
    [
        "x = 1\nfor i in range(200_000):\n    x += i\nprint(x)\n",
        "class A:\n    def __getattr__(self, n): raise SystemExit(n)\na = A()\nb = a\nprint(1)\n",
        "import sys\nsys.setrecursionlimit(300)\ndef f(n):\n    return n and f(n - 1)\nprint(f(200))\n",
        "d = {}\nd['d'] = d\nl = [d]\nl.append(l)\nprint(len(l))\n",
        "def g():\n    x = yield 1\n    yield x\nh = g()\nnext(h)\nprint(h.send(2))\n",
        "async def f():\n    return 1\nimport asyncio\nprint(asyncio.run(f()))\n",
        "exec('a = 1')\nprint(eval('a'))\n",
    ],
)
def test_a_program_goes_on_as_it_would(program: str, tmp_path: Path) -> None:
    ran, _ = traced(tmp_path, program)
    assert (ran.status, ran.stderr) == (0, b"")
    assert ran.stdout


def test_a_statement_that_runs_again_and_again_is_recorded_a_thousand_times(tmp_path: Path) -> None:
    _, streams = traced(tmp_path, "x = 1\nfor i in range(5000):\n    x += i\nlast = x\n")
    assert [len(record(streams, line)) for line in (3, 4)] == [1000, 1]


def test_a_call_that_cannot_be_recorded_fails_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("half imported")

    lines = Lines(str(tmp_path))
    monkeypatch.setattr(lines, "table", broken)
    assert lines.called(sys._getframe(), "call", None) is None
    assert "is not traced" in capsys.readouterr().err


def test_a_statement_that_sees_much_has_fewer_turns(tmp_path: Path) -> None:
    program = """class Thing:
    def __init__(self, number):
        self.number = number
held = [Thing(number) for number in range(4000)]
def walk():
    total = 0
    for number in range(500):
        first = held[number]
        total += number
    return total
walk()
"""
    ran, streams = traced(tmp_path, program)
    assert ran.status == 0
    assert 10 < len(record(streams, 8)) < 200
    assert len(record(streams, 9)) == 500
