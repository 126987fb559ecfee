"""Whether the order of a program's lines counts, by which of its processes write them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import verdict
from support.twice import compared

PROGRAM = """
import io, multiprocessing, os, random, subprocess, sys
def work():
    if sys.argv[1] == "command":
        subprocess.run(["echo", "done"])
    elif sys.argv[1] == "replaced":
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer)
        print("done", flush=True)
    else:
        print("done")
if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=work if sys.argv[1:] else os.getpid)
    worker.start()
    worker.join()
    lines = [f"best {name}" for name in "abcdefghijkl"]
    random.SystemRandom().shuffle(lines)
    print(*lines, sep=chr(10), flush=True)
"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [((), "parts"), (("printed",), "text"), (("command",), "text"), (("replaced",), "text")],
)
def test_the_order_of_lines_counts_where_one_process_wrote_them(
    said: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = compared(sys.executable, [str(program), *said], tmp_path, how=HowToRun(trace=False))
    assert verdict(found) == expected, found.texts
