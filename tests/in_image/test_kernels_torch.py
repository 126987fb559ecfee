"""Choices of kernels recorded and locked with the real torch.compile, on its C++ templates for products."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from torch_python import FILES, image_environment, make_venv, run

from conftest import needs
from reprobuild.in_image.kernels import packed

pytestmark = [pytest.mark.slow, pytest.mark.torch]

PROGRAM = """
import sys, torch
import torch._inductor.config as config
from torch._dynamo.utils import counters
config.freezing, config.max_autotune_gemm_backends = True, "CPP,ATEN"
torch.manual_seed(7)
model = torch.nn.Linear(256, int(sys.argv[1])).eval()
with torch.no_grad():
    torch.compile(model, mode="max-autotune")(torch.randn(128, 256))
print(sum(number for name, number in counters["inductor"].items() if "benchmarking" in name))
"""


def test_a_recorded_choice_is_taken_unmeasured_and_another_refused(tmp_path: Path) -> None:
    needs("g++")
    python = make_venv(tmp_path / "venv", torch=True)
    (hook,) = (tmp_path / "venv/lib").glob("python*/site-packages/reprobuild_hook.py")
    hook.write_text(hook.read_text().replace("/opt/reprobuild/kernels.py", str(FILES / "kernels.py")))
    env = image_environment(
        HOME=str(tmp_path), TMPDIR=str(tmp_path), REPROBUILD_KERNELS=f"record:{tmp_path}/r"
    )
    done = run(python, "-c", PROGRAM, "512", env=env)
    assert (done.returncode, int(done.stdout.split()[-1]) > 0) == (0, True), done.stderr[-2000:]
    record = json.loads(packed(f"{tmp_path}/r"))
    # The slower one is locked: what is taken is the record's choice, and not that of a clock.
    (cache,) = record["choices"].values()
    (timings,) = (each["highest"] for each in cache["cache"]["packed_linear"].values())
    for name in timings:
        timings[name] = 1.0 if name.startswith("CppMicroGemm") else 2.0
    (tmp_path / "kernels.json").write_text(json.dumps(record))
    locked = {**env, "REPROBUILD_KERNELS": f"locked:{tmp_path}/kernels.json"}
    done = run(python, "-c", PROGRAM, "512", env=locked)
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["0"]), done.stderr[-2000:]
    (folder,) = tmp_path.glob("reprobuild-kernels-*")
    code = "".join(file.read_text() for file in (*folder.rglob("*.py"), *folder.rglob("*.cpp")))
    assert "kernel_micro_gemm" in code
    assert "_mkl_linear" not in code
    done = run(python, "-c", PROGRAM, "520", env=locked)
    assert "KernelNotLockedError: kernel choices are locked, and packed_linear of" in done.stderr
