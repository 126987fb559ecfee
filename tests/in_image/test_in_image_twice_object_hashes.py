"""Objects of the program have hashes that their addresses do not decide."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import reprobuild

PROGRAM = """
import enum, random, sys
from dataclasses import dataclass

class Plain:
    def __init__(self, number): self.number = number
class Below(Plain): pass
class Slots:
    __slots__ = ("number",)
    def __init__(self, number): self.number = number
@dataclass(eq=False)
class Identity: number: int
@dataclass(frozen=True)
class Frozen: number: int
@dataclass(unsafe_hash=True)
class Unsafe: number: int
@dataclass
class Equal: number: int
class Own:
    def __init__(self, number): self.number = number
    def __eq__(self, other): return self.number == other.number
    def __hash__(self): return 7 * self.number
class Late:
    def __init__(self, number): self.number = number
Late.__eq__ = lambda self, other: self.number == other.number
class Colour(enum.Enum): RED = 1; BLUE = 2

holes = [bytearray(random.SystemRandom().randrange(200)) for _ in range(1000)]
for kind in (Plain, Below, Identity):
    objects = []
    for number in range(200):
        objects.append(kind(number))
        del holes[random.SystemRandom().randrange(len(holes))]
        holes.append(bytearray(random.SystemRandom().randrange(200)))
    random.Random(5).shuffle(objects)
    print([each.number for each in set(objects)])
assert len({Slots(1), Slots(1)}) == len({Plain(1), Plain(1)}) == 2
for kind in (Frozen, Unsafe, Own): assert len({kind(1), kind(1), kind(2)}) == 2, kind
assert len({Late(1), Late(1), Late(2)}) == 3  # as with addresses
try: hash(Equal(1))
except TypeError: pass
else: sys.exit("a hash of what has none")
assert len({Colour.RED, Colour.BLUE, Colour(1)}) == 2
gone = [hash(Plain(each)) for each in range(100)]  # at one address
assert len(set(gone)) == 100
one = Plain(1); assert hash(one) == hash(one) and one in {one} and vars(one) == {"number": 1}
"""


def test_a_set_of_objects_has_one_order(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    start = (
        "import runpy, sys; sys.path.insert(0, sys.argv[1])\n"
        "from reprobuild.in_image.twice import object_hashes, watching\n"
        "sys.meta_path.insert(0, watcher := watching.Watcher()); object_hashes.install(watcher)\n"
        "runpy.run_path(sys.argv[2], run_name='__main__')"
    )
    command = [sys.executable, "-c", start, str(Path(reprobuild.__file__).parents[1]), str(program)]
    ran = [subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(3)]
    assert [(each.returncode, each.stderr) for each in ran] == [(0, "")] * 3
    assert ran[0].stdout == ran[1].stdout == ran[2].stdout != ""
