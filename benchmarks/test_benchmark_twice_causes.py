"""How often the first line that ``twice`` names is the cause, by programs whose cause is known.

``twice_programs`` has a program for each public report that its first line names, with a mark at the line of
the cause; another folder can be given. Programs that did not differ this time do not count. A wrong line that
stands as the cause fails. Those of the set ``gpu`` need a GPU: most race there.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from reprobuild.twice.recorded_run import Comparison, HowToRun
from reprobuild.twice.report import rows, verdict, verdict_line
from reprobuild.twice.runs import compare_runs
from support.twice import recorded, scratch_of_one_name

pytestmark = pytest.mark.torch

FOLDER = Path(os.environ.get("REPROBUILD_TWICE_PROGRAMS") or Path(__file__).parent / "twice_programs")
ONLY = re.compile(os.environ.get("REPROBUILD_TWICE_ONLY", ""))
SETS = sorted(each for each in FOLDER.iterdir() if each.is_dir()) if FOLDER.is_dir() else []
MARK = "# cause"
QUIET = ("text differs", "also", "note", "compared", "cost", "random generator", "ignored")
"""Rows of the report that say nothing of the cause."""
COLD = {"r01", "r21", "n10", "n11", "n04", "u02", "u08", "u04", "u09", "u15", "v03", "v06", "v07", "v08"}
"""Programs with processes or addresses of their own, which a fork of a process would share, and with
generators that NumPy lets the system seed: the process to fork has imported it before the recorder.
"""


def marked(folder: Path) -> set[tuple[str, int]]:
    """Return file and number of the lines that are marked."""
    return {
        (path.name, number)
        for path in folder.rglob("*")
        if path.suffix in (".py", ".sh", ".sql")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith(MARK)
    }


def _shell(program: Path) -> str:
    """Return the shell that a script asks for in its first line."""
    return "/bin/bash" if "bash" in program.read_text().partition("\n")[0] else "/bin/sh"


def has_gpu(python: str) -> bool:
    command = [python, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"]
    return subprocess.run(command, check=False).returncode == 0


def score(found: Comparison, right: set[tuple[str, int]]) -> str:
    """Return ``first``, ``listed``, ``wrong``, ``not known``, or that the program did not differ.

    With the line at which a time decides that of the clock counts, with one that takes the order of a set the
    next one, which makes the set, with one of a constructor that draws the one that makes the object, and
    with one that takes a default for a seed the one that gave none: the report tells both.
    """
    if verdict(found) != "parts":
        return f"did not differ: {verdict(found)}"
    if found.cause is None:
        return "not known"
    cause = found.cause
    at = [cause.place, *([cause.made_at] if cause.made_at is not None else [])]
    given = [at for each in cause.candidates for at in (each.place, each.made_for) if at is not None]
    told = [*given, *at] if cause.came_in else [*at, *given]  # as the report has them
    places = [(Path(each.file).name, each.line) for each in told]
    if (
        cause.proven
    ):  # where a time decides and the clock that gave it are two, of which one may be told twice
        return "first" if right & set(list(dict.fromkeys(places))[:2]) else "wrong"
    return "listed" if right & set(places) else "not known"


@pytest.mark.parametrize("folder", SETS, ids=lambda each: each.name)
def test_the_first_line_is_the_cause(folder: Path, tmp_path: Path) -> None:
    need_torch()
    python = torch_python()
    if folder.name == "gpu" and not has_gpu(python):
        pytest.skip("PyTorch finds no GPU")
    right = marked(folder)
    path = f"{Path(python).parent}:{os.environ['PATH']}"
    scores: dict[str, str] = {}
    for program in sorted(
        each for each in folder.iterdir() if re.fullmatch(r"[a-z]\d\d\.(py|sh)", each.name)
    ):
        if not ONLY.search(program.stem):
            continue
        is_python = program.suffix == ".py"
        run = recorded(
            python if is_python else _shell(program),
            [str(program)],
            env={"PATH": path, "OMP_NUM_THREADS": "1"},
            warm=is_python
            and folder.name in ("first", "second", "third", "fourth")
            and program.stem not in COLD,
        )
        began = time.monotonic()
        found = compare_runs(run, HowToRun(), scratch_of_one_name(tmp_path), lambda _: None)
        scores[program.stem] = score(found, right)
        took = f"{time.monotonic() - began:.0f} s"
        print(f"\n{program.stem}: {scores[program.stem]}, {took}: {verdict_line(found)}")
        for heading, text in rows(found):
            if heading not in QUIET:
                print(f"    {heading}: {text[:200]}")
    counts = {each: list(scores.values()).count(each) for each in ("first", "listed", "not known", "wrong")}
    print(f"\n{folder.name}: {counts} of {sum(counts.values())} that differed")
    assert not counts["wrong"], [name for name, each in scores.items() if each == "wrong"]
