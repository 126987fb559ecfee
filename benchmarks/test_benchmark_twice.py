"""What the recorder of ``twice`` costs: steps of a model with 10 million parameters, with it and without.

With one thread, as an image's strict profile sets it; digests are made on all processors. The runs alternate,
each pair gives a ratio of medians by the clock, and the median of those counts. It needs a machine that does
nothing else. Beside it the ratio of processor time: what a program pays that keeps all processors busy.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import pytest
from torch_python import need_torch, torch_python

from reprobuild.twice.recorded_run import HowToRun, ProgramRun, one_run
from reprobuild.twice.recorder_cost import measured
from support.twice import recorded, scratch_below

pytestmark = pytest.mark.torch

PROGRAM = """
import sys, time, torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(384, 6, 1536, batch_first=True)
layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
optimizer = torch.optim.AdamW(layers.parameters())
inputs = torch.randn(int(sys.argv[1]), 128, 384)
every, times = int(sys.argv[3]), [time.process_time()]
for _ in range(int(sys.argv[2])):
    optimizer.zero_grad()
    layers(inputs).pow(2).mean().backward()
    optimizer.step()
    times.append(time.process_time())
spent = sorted((times[at + every] - times[at]) / every for at in range(1, len(times) - every, every))
print(sum(p.numel() for p in layers.parameters()), spent[len(spent) // 2])
"""
PAIRS = 3
MOST = 5.0
"""Percent of a step that the digests may cost, with a batch of 8 texts of 128 tokens."""


def test_the_digests_of_each_step_cost_little(tmp_path: Path) -> None:
    need_torch()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def run(*argv: int, settings: Mapping[str, str]) -> ProgramRun:
        run = recorded(torch_python(), [str(program), *map(str, argv)], env=settings)
        return one_run(run, HowToRun(), scratch_below(tmp_path))

    percents: dict[tuple[int, int], list[float]] = {}
    for batch, every, steps in ((8, 1, 6), (8, 5, 11), (2, 1, 9)):
        for _ in range(PAIRS):
            with_it = run(batch, steps, every, settings={"REPROBUILD_TWICE_EVERY": str(every)})
            without = run(batch, steps, every, settings={"REPROBUILD_TWICE_TIMES": "1"})
            took = [float(each.stdout[0].split()[1]) for each in (with_it, without)]
            wall = measured([with_it.streams], without.streams, every)
            assert wall is not None
            percents.setdefault((batch, every), []).append(wall.percent)
            told = f"{1e3 * wall.recorded:.0f} and {1e3 * wall.plain:.0f} ms a step"
            told += f"; {100 * (took[0] / took[1] - 1):+.1f} % of processor time"
            sys.stdout.write(f"\nbatch {batch}, every {every}: {wall.percent:+.1f} % ({told})")
    for (batch, every), all_ in percents.items():
        sys.stdout.write(f"\nbatch {batch}, every {every}: {median(all_):+.1f} % (median)")
    assert median(percents[8, 1]) <= MOST
