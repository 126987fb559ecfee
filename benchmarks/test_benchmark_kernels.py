"""Kernels that torch.compile chooses by timing, recorded once and locked: fresh containers on a busy machine.

Each container compiles anew, with max-autotune and Inductor's C++ templates for products. Without the lock
the choice is one of clocks; with it all containers have one set of choices, and nothing is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator

import pytest
import tomli_w

from support.bench import TORCH, Bench

pytest_plugins = ["support.shared"]

CONTAINERS = int(os.environ.get("REPROBUILD_BENCHMARK_CONTAINERS", "20"))
PROGRAM = """
import hashlib, torch
import torch._inductor.config as config
from torch._dynamo.utils import counters
config.freezing, config.max_autotune_gemm_backends = True, "CPP,ATEN"
torch.manual_seed(7)
layers = torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 96), torch.nn.Linear(96, 384)
model = torch.nn.Sequential(*layers).eval()
found = hashlib.sha256()
for rows in (4, 128):  # the templates are faster for few rows, and for many of about the libraries' speed
    torch._dynamo.reset()
    with torch.no_grad():
        out = torch.compile(model, mode="max-autotune")(torch.randn(rows, 256))
    found.update(out.numpy().tobytes())
print(found.hexdigest()[:16],
      sum(number for name, number in counters["inductor"].items() if "benchmarking" in name),
      counters["inductor"]["cpp_templated_kernel_counter"])
"""


BUSY = """
import time
while True:
    end = time.time() + time.time() % 3
    while time.time() < end:
        sum(range(9999))
    time.sleep(1)
"""


@pytest.fixture
def load() -> Iterator[None]:
    """Keep the cores busy now and then, so that clocks say something else each time."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.usefixtures("load")
def test_locked_choices_in_fresh_containers(bench: Bench) -> None:
    path, name = bench.folder / "envs/kernels.toml", "reprobuild/kernels:1"
    packages = ("--apt", "g++", "--apt", "python3.11-dev")
    bench.run("lock", "--cuda", "cpu", "--torch", TORCH, *bench.pytorch, *packages, "--name", "kernels")
    (bench.folder / "program.py").write_text(PROGRAM)
    volume = ("--volume", f"{bench.folder}:/app")
    command = (name, "--", "python3", "/app/program.py")
    bench.run("image", str(path), "--tag", name)
    out, _ = bench.run("run", "--record-kernels", "envs/choices.json", *volume, *command)
    recorded = out.split()
    assert [int(count) > 0 for count in recorded[1:]] == [True, True], out  # else there is nothing to lock
    request = tomllib.loads(path.read_text())
    request.setdefault("determinism", {}).update({"kernels": "locked", "kernel-choices": ["choices.json"]})
    path.write_text(tomli_w.dumps(request))
    bench.run("lock", str(path))
    bench.run("image", str(path), "--tag", name)
    seen, seconds = Counter[str](), []
    for _ in range(CONTAINERS):
        start = time.monotonic()
        out, _ = bench.run("run", *volume, *command)
        seconds.append(time.monotonic() - start)
        seen[out.strip()] += 1
        sys.stdout.write(f"{out.strip()}: bits, measurements, kernels by template; {seconds[-1]:.0f} s\n")
        sys.stdout.flush()
    assert list(seen) == [f"{recorded[0]} 0 {recorded[2]}"], (recorded, seen)
