"""Launches of kernels in a trace, by classes shaped as Triton's: a launcher below an autotuner, with a grid.

The real Triton launches by classes of these names; a program for a GPU is among those of the benchmark.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from torch_python import need_torch, torch_python

from reprobuild import in_image

pytestmark = [pytest.mark.slow, pytest.mark.torch]

TRITON = """
class JITFunction:
    def __init__(self, fn):
        self.fn, self.__name__ = fn, fn.__name__

    def __getitem__(self, grid):
        return lambda *arguments, **named: self.run(*arguments, grid=grid, warmup=False, **named)

    def run(self, *arguments, grid, warmup, **named):
        return self.fn(*arguments, **named)
"""
AUTOTUNER = """
from triton.runtime.jit import JITFunction

class Autotuner(JITFunction):
    def __init__(self, fn):
        self.fn = fn

    def run(self, *arguments, **named):
        for block in (1, 2, 3):  # it measures several
            self.fn.run(*arguments, BLOCK=block, **named)
"""
PROGRAM = """
import sys, torch
from types import SimpleNamespace
sys.path[:0] = sys.argv[1:2]
from twice import kernels, trace, watching

records = []
writer = SimpleNamespace(path=lambda: sys.argv[2] + "/1.jsonl", write=records.append)
traced = trace.Trace(torch, SimpleNamespace(module=lambda module: ""), writer)
kernels.record_into(traced)
with traced:
    torch.zeros(1)  # torch looks for the real Triton now
watcher = watching.Watcher()
sys.meta_path.insert(0, watcher)
kernels.install(watcher)
sys.path.insert(0, sys.argv[2] + "/site-packages")
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
traced.active = True

def total(x, out, factor, BLOCK):
    out.add_(x.sum() * factor)

def unwritten(x, out, BLOCK):
    out.copy_(x)

kernel, tuned, fills = JITFunction(total), Autotuner(JITFunction(total)), JITFunction(unwritten)
x, w = torch.ones(3), torch.ones(3, requires_grad=True)
with traced:
    out = torch.zeros(1)
    kernel[(1,)](x, out, 2.0, BLOCK=4)  # launch
    tuned[(1,)](x, out, 2.0)  # tuned
    fills[(1,)](x, torch.empty(3), BLOCK=1)  # fills
    loss = (w * 3).sum() * 0.5  # forward
    loss.backward()
traced.active = False
kernel[(1,)](x, out, 2.0, BLOCK=4)
assert out.item() == 6 + 18 + 6, out
import json
places = {each["n"]: each["at"][3] for each in records if each["k"] == "place"}
print(json.dumps([{**each, "place": places[each["place"]]} for each in records if each["k"] == "op"]))
"""


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    need_torch()
    folder = tmp_path_factory.mktemp("kernels")
    site = folder / "site-packages"
    (site / "triton/runtime").mkdir(parents=True)
    for name, text in (("", ""), ("jit", TRITON), ("autotuner", AUTOTUNER)):
        (site / "triton/runtime" / f"{name or '__init__'}.py").write_text(text)
    (site / "triton/__init__.py").write_text("")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [torch_python(), str(program), str(Path(in_image.__file__).parent), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[-2000:]) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_launch_is_an_operation_with_its_line_and_its_tensors(operations: list[dict[str, Any]]) -> None:
    launched = [each for each in operations if "::" in each["op"]]
    assert [(each["op"], each["place"].partition("# ")[2]) for each in launched] == [
        *(("triton::total", "launch"), ("triton::total", "tuned"), ("triton::unwritten", "fills")),
    ]
    first, second, fills = launched
    zeros = next(each for each in operations if each["op"].startswith("zeros"))
    assert first["in"][1] == [zeros["out"][0], zeros["n"]]
    assert first["out"][0] == first["in"][0][0]
    assert first["out"][1] != first["in"][1][0]
    assert second["in"][1] == [first["out"][1], first["n"]]  # what it adds to, the first launch made
    assert len(fills["in"]) == 1  # nobody has written what torch.empty gave
    # What a kernel does by torch is a part of it, as what an autotuner tries.
    assert "add_.Tensor" not in {each["op"] for each in operations}


def test_a_backward_pass_has_the_line_of_its_forward_though_the_gradient_of_ones_comes_between(
    operations: list[dict[str, Any]],
) -> None:
    back = [each["place"].partition("# ")[2] for each in operations if each["back"]]
    assert back[0] == "forward"  # what multiplies by 0.5; the last adds to the gradient, which has no forward
