"""A receipt of a run in the CPU image, run again: as it was, and with what is not as it was named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.bench import NAME, Bench

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow

PROGRAM = """
import os, torch
torch.manual_seed(int(os.environ["SEED"]))
model = torch.nn.Linear(2, 1)
if os.path.exists("last.pt"):
    model.load_state_dict(torch.load("last.pt"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with open("data.csv") as file:
    data = torch.tensor([[float(number) for number in line.split(",")] for line in file])
for step in range(3):
    optimizer.zero_grad()
    model(data).pow(2).mean().backward()
    optimizer.step()
torch.save(model.state_dict(), "last.pt")
"""


def test_a_receipt_is_run_again(bench: Bench, digest: str, tmp_path: Path) -> None:
    project, paper = tmp_path / "project", tmp_path / "paper.json"
    project.mkdir()
    train, data, last = (project / name for name in ("train.py", "data.csv", "last.pt"))
    train.write_text(PROGRAM)
    data.write_text("1,2\n3,4\n")
    secret = {"HF_TOKEN": "not-to-be-told"}
    asked = ("-e", "SEED=7", "-e", "HF_TOKEN", "--no-network", "-v", f"{project}:/code", "-w", "/code")
    argv = ("run", "--receipt", str(paper), *asked, NAME, "--", "python3", "train.py")
    assert "the receipt has the values of SEED\n" in bench.run(*argv, env=secret)[1]
    told = paper.read_text()
    assert secret["HF_TOKEN"] not in told
    assert str(tmp_path) not in told
    assert digest in told
    found = json.loads(told)
    assert [each["path"] for each in found["inputs"]] == ["/code/data.csv", "/code/train.py"]
    assert [each["path"] for each in found["outputs"]] == ["/code/last.pt"]

    def again(*options: str, status: int = 16) -> dict[str, object]:
        where = ("-v", f"{project}:/code", "-e", "HF_TOKEN", *options)
        argv = ("replay", str(paper), "--json", *where)
        result: dict[str, object] = json.loads(bench.run(*argv, status=status, env=secret)[0])
        return result

    # Its own checkpoint is there now, from which this program goes on.
    went_on = again("--yes")
    assert went_on["line"] == "input: /code/last.pt is read now, and was not"
    assert went_on["ran"]
    last.unlink()
    held = again("--yes", status=0)
    assert held["holds"]
    assert not last.exists()
    bench.run("replay", str(paper), "-v", f"{project}:/code", "-e", "HF_TOKEN", status=16, env=secret)

    def altered(path: Path, change: Callable[[str], str]) -> object:
        before = path.read_text()
        path.write_text(change(before))
        try:
            return again("--check")["line"]
        finally:
            path.write_text(before)

    assert altered(data, lambda text: text.replace("4", "5")) == "input: /code/data.csv:2: now '3,5'"
    assert altered(train, lambda text: text.replace("0.01", "0.1")) == (
        "input: /code/train.py:7: now 'optimizer = torch.optim.SGD(model.parameters(), lr=0.1)'"
    )
    assert again("--check", "-e", "SEED=8")["line"] == "variable: SEED was '7', now '8'"
    other = again("--yes", "--anyway", "-e", "SEED=8")["changes"]
    assert isinstance(other, list)
    assert [each["what"] for each in other] == ["variable", "step", "output"]
