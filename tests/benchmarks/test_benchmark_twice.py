"""What the recorder of ``twice`` costs: a step of a model with 10 million parameters, with it and without."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from support.twice import recorded

pytestmark = [pytest.mark.benchmark, pytest.mark.torch]

PROGRAM = """
import time, torch
from torch import nn
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(384, 6, 1536, batch_first=True)
layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
optimizer = torch.optim.AdamW(layers.parameters())
print(sum(p.numel() for p in layers.parameters()), "parameters")
inputs = torch.randn(8, 128, 384)
times = []
for _ in range(8):
    started = time.perf_counter()
    optimizer.zero_grad()
    layers(inputs).pow(2).mean().backward()
    optimizer.step()
    times.append(time.perf_counter() - started)
print("median", sorted(times[2:])[3])
"""


def median(output: bytes) -> float:
    found = re.search(rb"median ([0-9.]+)", output)
    assert found is not None, output
    return float(found[1])


def test_a_step_with_and_without_the_recorder(tmp_path: Path) -> None:
    need_torch()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    plain = subprocess.run([torch_python(), program], capture_output=True, check=True).stdout
    without = median(plain)
    lines = [f"{plain.decode().splitlines()[0]}; a step without the recorder: {without * 1e3:.0f} ms"]
    for every in ("1", "10"):
        folder = tmp_path / every
        folder.mkdir()
        ran = recorded(torch_python(), [str(program)])(folder, {"REPROBUILD_TWICE_EVERY": every}, None)
        with_it = median(ran.stdout)
        lines.append(f"every {every}: {with_it * 1e3:.0f} ms ({100 * (with_it / without - 1):+.1f} %)")
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
