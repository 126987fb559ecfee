"""What the trace keeps of an operation's outputs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from reprobuild import in_image

pytestmark = [pytest.mark.slow, pytest.mark.torch]

PROGRAM = """
import sys, torch
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
from twice import digests, trace

digests.plain = lambda torch, tensor: tensor.clone()  # as of a GPU: a copy in memory of its own
writer = SimpleNamespace(path=lambda: sys.argv[2] + "/1.jsonl")
kept = trace.Trace(torch, None, writer)
tensor = torch.arange(1 << 20).float()
assert kept._keep(tensor) == 0
with open(sys.argv[2] + "/1.values", "rb") as file:
    assert torch.equal(torch.frombuffer(bytearray(file.read()), dtype=torch.float32), tensor)
"""


def test_the_copy_of_an_output_lasts_as_long_as_it_is_read(tmp_path: Path) -> None:
    need_torch()
    command = [torch_python(), "-c", PROGRAM, str(Path(in_image.__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
