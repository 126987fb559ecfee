"""``reprobuild twice`` in the CPU image: a program that repeats, one that does not, one that goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import ranks
from support.bench import NAME, Bench

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow

PROGRAM = """
import ctypes, os, sys, time, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = 0
if os.path.exists("last.pt"):
    start, state = torch.load("last.pt")
    model.load_state_dict(state)
for step in range(start, 4):
    inputs = torch.full((3, 4), float(step))
    if sys.argv[1:] == ["clock"] and step == 2:
        inputs[0, 0] = time.time() % 100
    if sys.argv[1:] == ["native"]:
        inputs[0, 1] = ctypes.CDLL(None).clock() % 9973 / 9973
    optimizer.zero_grad()
    model(inputs).pow(2).sum().backward()
    optimizer.step()
    torch.save((step + 1, model.state_dict()), "last.pt")
"""
SHUFFLED = """
seq 99 | sort -R > order.txt
python3 -c 'print(open("order.txt").read().split())'
"""


def test_a_program_in_a_bound_folder(bench: Bench, digest: str, tmp_path: Path) -> None:
    work = tmp_path / "work, of mine"
    work.mkdir()
    (work / "train.py").write_text(PROGRAM)
    where = ("twice", "--json", "--no-network", "-v", f"{work}:/code", "-w", "/code")
    kept = tmp_path / "golden.repeat"
    same = json.loads(bench.run(*where, "--record", str(kept), NAME, "--", "python3", "train.py")[0])
    assert same["line"] == "repeats bit for bit (2 runs, 4 steps, 0 lines of output, 1 file)"
    assert sorted(path.name for path in work.iterdir()) == ["train.py"]
    parts = json.loads(bench.run(*where, NAME, "--", "python3", "train.py", "clock", status=16)[0])
    assert parts["line"].startswith("parts at step 2 (SGD): inputs: item 0 (1 item differs)")
    assert parts["cause"]["text"] == "inputs[0, 0] = time.time() % 100"
    assert parts["cause"]["file"] == "/code/train.py"
    followed = json.loads(bench.run(*where, NAME, "--", "python3", "train.py", "native", status=16)[0])
    [line] = [each["line"] for each in followed["cause"]["from_outside"]]
    assert "ctypes.CDLL" in PROGRAM.splitlines()[line - 1]
    assert followed["cause"]["proven"]
    (work / "shuffle.sh").write_text(SHUFFLED)
    drawn = json.loads(bench.run(*where, NAME, "--", "sh", "shuffle.sh", status=16)[0])
    [line] = [each["line"] for each in drawn["cause"]["from_outside"]]
    assert (drawn["cause"]["proven"], SHUFFLED.splitlines()[line - 1]) == (
        True,
        "seq 99 | sort -R > order.txt",
    )
    again = json.loads(bench.run(*where, "--against", str(kept), NAME, "--", "python3", "train.py")[0])
    assert again["holds"]
    resumed = json.loads(bench.run(*where, "--interrupt-at", "2", NAME, "--", "python3", "train.py")[0])
    assert resumed["line"].startswith("resumes bit for bit (went on at step ")
    calls = "import torch; torch.nn.LayerNorm(4)(torch.randn(3, 4))"
    batch = json.loads(bench.run(*where, "--batch", NAME, "--", "python3", "-c", calls)[0])
    assert batch["line"].startswith("a row does not depend on its batch (LayerNorm: alone and in batches of ")


def test_ranks_of_torchrun_find_each_other_without_a_network(
    bench: Bench, digest: str, tmp_path: Path
) -> None:
    (tmp_path / "ranks.py").write_text(ranks.RANKS)
    where = ("--json", "--no-network", "-v", f"{tmp_path}:/code", "-w", "/code", NAME)
    found = json.loads(bench.run("twice", *where, "--", *ranks.TORCHRUN)[0])
    assert found["line"] == ranks.LINE
    assert any(note.startswith(ranks.NOTE) for note in found["notes"])
