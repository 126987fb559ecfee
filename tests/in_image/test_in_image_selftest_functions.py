"""The public functions that a passing report covers: each is really called, and the share is in the pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from torch_python import make_venv, program_of, run

pytestmark = [pytest.mark.slow, pytest.mark.torch]

CALLED = """
import importlib.util, inspect, json, random, sys
spec = importlib.util.spec_from_file_location("selftest", sys.argv[1])
selftest = sys.modules["selftest"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(selftest)
import numpy, torch
table = {**selftest.functional(), **selftest.others()}
missed = []
for name, call in table.items():
    where, _, last = name.rpartition(".")
    modules = {"torch": torch, "numpy": numpy, "random": random}
    owner = modules.get(where) or selftest.public(where)
    calls, inner = [], getattr(owner, last)
    setattr(owner, last, lambda *a, **k: (calls.append(1), inner(*a, **k))[1])
    call()
    setattr(owner, last, inner)
    if not calls:
        missed.append(name)
f = torch.nn.functional
own = ("torch.nn.functional", "torch._C._nn", "torch._jit_internal", None)
no = ("_", "_with_indices", "_int_or_pair", "boolean_dispatch", "max_unpool1d", "max_unpool3d")
wanted = {
    n for n, v in vars(f).items()
    if callable(v) and not inspect.isclass(v) and n[0].islower() and not n.endswith(no)
    and "torch_function" not in n and not n.startswith("upsample") and getattr(v, "__module__", None) in own
}
print(json.dumps([sorted(table), missed, sorted(wanted)]))
"""
# Without helpers, deprecated names, in-place forms, and what raises with determinism on.
BY_OTHER_CHECKS = {
    *("conv1d", "conv2d", "conv3d", "conv_transpose2d", "embedding", "layer_norm", "max_unpool2d"),
    "scaled_dot_product_attention",
}
"""Called by checks of their own (conv1d, ..., raises)."""


def test_each_function_of_the_table_is_called_and_the_share_is_in_the_pages(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    done = run(python, "-W", "ignore", "-c", CALLED, program_of(python))
    assert done.returncode == 0, done.stderr[-2000:]
    table, missed, wanted = json.loads(done.stdout)
    assert missed == []
    prefix = "torch.nn.functional."
    covered = {name.removeprefix(prefix) for name in table if name.startswith(prefix)} | BY_OTHER_CHECKS
    share = 100 * len(covered & set(wanted)) // len(wanted)
    page = (Path(__file__).parents[2] / "docs/self-test.md").read_text()
    said = re.search(r"\| `torch.nn.functional` \| (\d+) % \|", page)
    assert said
    assert int(said[1]) == share, (share, sorted(set(wanted) - covered))
