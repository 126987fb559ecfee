"""What a generator is seeded with, and which line is told for it, under the real recorder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from support.twice import recorded

PROGRAM = """
import random

def make(seed=None):
    return random.Random(seed)

class Game:
    def __init__(self, seed=None):
        self.rng = random.Random()
        self.rng.seed(seed)

make()  # none given
make(5)
Game()  # none given
Game(seed=7)
random.Random()  # none given

def pick(rng=None):
    rng = rng or random.Random()  # none given, a default
    return rng.random()

pick()  # gave none
pick(random.Random(1))
safe = random.SystemRandom()

def noise():
    return safe.random()  # drawn by the system

noise()
random.SystemRandom().random()
random.seed(3)
"""


def test_the_line_that_gives_no_seed_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "run"
    folder.mkdir()
    ran = recorded(sys.executable, [str(program)])(folder, {"REPROBUILD_TWICE_TRACE": "0-0"}, None)
    assert ran.status == 0, ran.stderr
    records = [
        json.loads(line)
        for path in (folder / "records").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    seeds = [each for each in records if each.get("k") == "source" and each["kind"] == "seed"]
    lines = PROGRAM.splitlines()
    told = {each["place"][1] for each in seeds if "none given" in each["shown"]}
    # The one in the constructor is seeded again at once.
    expected = {number for number, line in enumerate(lines, 1) if "none given" in line}
    assert told == expected | {1 + lines.index("        self.rng = random.Random()")}
    defaults = {(each["place"][1], each["for"][1]) for each in seeds if each["for"][0]}
    default = next(number for number, line in enumerate(lines, 1) if "a default" in line)
    assert defaults == {
        (default, 1 + lines.index("pick()  # gave none")),
        (1 + lines.index("        self.rng = random.Random()"), 1 + lines.index("Game()  # none given")),
        # The line that seeds with nothing, beside the one that gave it nothing.
        (1 + lines.index("make()  # none given"), 1 + lines.index("    return random.Random(seed)")),
        (1 + lines.index("Game()  # none given"), 1 + lines.index("        self.rng.seed(seed)")),
    }
    assert {each["place"][1] for each in seeds} - told == {
        1 + lines.index("    return random.Random(seed)"),
        1 + lines.index("        self.rng.seed(seed)"),
        1 + lines.index("pick(random.Random(1))"),
    }
    drawn = [(each["place"][1], each["for"][1]) for each in records if "SystemRandom" in each.get("name", "")]
    at, made = (
        1 + lines.index(line)
        for line in ("    return safe.random()  # drawn by the system", "safe = random.SystemRandom()")
    )
    assert drawn == [(at, made), (1 + lines.index("random.SystemRandom().random()"), 0)]
