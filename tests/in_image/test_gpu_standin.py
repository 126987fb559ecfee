"""The lines for a GPU, run where there is none: torch's build for the CPU says that it has one.

What CUDA computes is not tested here, nor what races in it: see tests/support/standin.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from torch_python import FILES, image_environment, make_venv, program_of, run, torch_python

from conftest import needs
from reprobuild.selftest.cost import CostReport
from reprobuild.selftest.report import SelfTestReport
from support import reports

pytestmark = [pytest.mark.slow, pytest.mark.torch]

STANDIN = Path(reports.__file__).parent / "standin"
LONG = bool(os.environ.get("REPROBUILD_TEST_STANDIN"))  # also two GPUs, the whole battery, the costs
FACTS = """
import os, torch
base = os.path.dirname(torch.__file__)
print(base, int(torch._C._GLIBCXX_USE_CXX11_ABI))
"""


@functools.cache
def library(folder: Path) -> Path:
    """Compile the stand-in for the torch of the tests; it takes a quarter of a minute."""
    needs("g++")
    done = subprocess.run([torch_python(), "-c", FACTS], capture_output=True, text=True, check=True)
    base, abi = done.stdout.split()
    target = folder / "standin.so"
    subprocess.run(
        [
            *("g++", "-std=c++20", "-O0", "-w", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"),
            *(f"-I{base}/include", f"-I{base}/include/torch/csrc/api/include", STANDIN / "standin.cpp"),
            *("-o", target, f"-L{base}/lib", f"-Wl,-rpath,{base}/lib", "-ltorch", "-ltorch_cpu", "-lc10"),
        ],
        check=True,
    )
    return target


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment as in an image, with the stand-in."""
    files = {"a_standin.pth": "import standin", "standin.py": (STANDIN / "standin.py").read_text()}
    return make_venv(tmp_path_factory.mktemp("standin") / "venv", torch=True, files=files)


@pytest.fixture(scope="module")
def env(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    made = library(tmp_path_factory.mktemp("library"))
    return {**image_environment(REPROBUILD_SEED="7"), "STANDIN": str(made)}


def report(python: Path, env: Mapping[str, str], *options: str) -> SelfTestReport:
    done = run(python, program_of(python), "--json", "--device", "cuda", *options, env=env)
    return SelfTestReport.parse(done.stdout.encode(), digest="sha256:" + "0" * 64)


def test_every_check_runs_and_fails_where_its_operation_is_out_of_order(
    python: Path, env: Mapping[str, str]
) -> None:
    program = Path(__file__).with_name("standin_checks.py")
    done = run(python, program, program_of(python), env={**env, "STANDIN_GPUS": "2"})
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    found = answer["found"]
    broken = {name: found.pop(name) for name in [*found] if ":" in name}
    assert {name: outcome for name, outcome in found.items() if outcome[0] != "passed"} == {}
    assert broken.pop("cudnn-benchmark: sees it")[0] == "passed"
    assert broken.pop("cudnn-benchmark: sees nothing")[0] == "inconclusive"
    assert sum(name.endswith(": misspelt") for name in broken) in (10, 11)  # by the version of torch
    assert len(broken) > 30
    assert {name: outcome for name, outcome in broken.items() if outcome[0] != "failed"} == {}
    assert answer["scope"]["name"].startswith("NVIDIA H100")
    assert answer["scope"]["nccl"] == "2.28.9"
    assert answer["scope"]["ecc"] is None


def test_the_program_as_a_whole_forks_before_it_looks_for_a_gpu(python: Path, env: Mapping[str, str]) -> None:
    """The ranks train with AdamW, whose step calls the driver: it is broken in a child of who has used it."""
    whole = report(python, env, "--only", "ranks-gloo", "ranks-nccl", "precision")
    assert {(check.name, check.device): check.status for check in whole.checks} == {
        ("imports", "cpu"): "passed",
        ("ranks-gloo", "cpu"): "passed",
        ("ranks-nccl", "cuda"): "not-run",
        ("precision", "cpu"): "passed",
        ("precision", "cuda"): "passed",
    }
    assert whole.gpu_tested


REPORTS = Path(__file__).parents[2] / "benchmarks/gpu_reports.py"


def test_the_command_for_who_has_a_gpu_writes_reports_without_folders(
    python: Path, env: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("gpu_reports", REPORTS)
    assert spec
    assert spec.loader
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    # Of the battery as a whole, and of what a GPU is too slow for here, see below.
    monkeypatch.setattr(program, "RUNS", {"battery": ("--only", "precision", "setting-environment")})
    for name in ("STANDIN", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, env.get(name, ""))
    monkeypatch.setattr(sys, "argv", ["gpu_reports.py", str(python), str(tmp_path / "reports")])
    assert program.main() == 0
    text = (tmp_path / "reports/battery.json").read_text()
    assert json.loads(text)["scope"]["gpu"]["name"].startswith("NVIDIA H100")
    assert not any(str(place) in text for place in (tmp_path, python.parents[1], Path.home(), FILES))
    monkeypatch.setattr(program, "RUNS", {"battery": ("--only", "gone")})
    monkeypatch.setenv("STANDIN_GPUS", "0")
    assert program.main() == 1


CAPTURE = """
import torch
model = torch.nn.Linear(8, 8).to("cuda")
x, stepper = torch.ones(4, 8, device="cuda"), torch.optim.SGD(model.parameters(), lr=0.1)

def step():
    stepper.zero_grad(set_to_none=False)
    model(x).sum().backward()
    stepper.step()

step()
graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    step()
torch.cuda.current_stream().wait_stream(side)
with torch.cuda.graph(graph):
    step()
graph.replay()
step()
"""


def test_a_program_that_captures_a_cuda_graph_is_recorded_around_it(
    python: Path, env: Mapping[str, str], tmp_path: Path
) -> None:
    shutil.copytree(FILES / "twice", tmp_path / "site/twice", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "records").mkdir()
    recorded = {"REPROBUILD_TWICE": str(tmp_path / "records"), "PYTHONPATH": str(tmp_path / "site")}
    done = run(python, "-c", "import twice\n" + CAPTURE, env={**env, **recorded})
    assert (done.returncode, "twice: warning" in done.stderr) == (0, False), done.stderr[-3000:]
    (file,) = (tmp_path / "records").glob("*.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(record["k"] == "step" for record in records) == 3, "all but the captured one"
    parts = [part[0] for record in records for part in record.get("parts", ())]
    assert parts.count("not recorded: what a CUDA graph computes") == 1
    assert "random cuda:0" in parts
    (gpus,) = (record for record in records if record["k"] == "gpus")
    assert gpus["GPU"] == "NVIDIA H100 80GB HBM3 (132 multiprocessors)"
    assert gpus["cuDNN"] == "91900"
    assert not any("tensors of type" in part for part in parts)


@pytest.mark.skipif(not LONG, reason="takes two minutes; set REPROBUILD_TEST_STANDIN")
def test_two_gpus_the_battery_and_the_costs(python: Path, env: Mapping[str, str]) -> None:
    two = report(
        python, {**env, "STANDIN_GPUS": "2"}, "--only", "ranks-nccl", "torch-seed", "generator-state"
    )
    assert two.passed, two.failures()
    assert next(check for check in two.checks if check.name == "ranks-nccl").status == "passed"
    assert two.scope["gpu"]["devices"].count("H100") == 2
    whole = report(python, env)
    # Without faults of its own nothing races in it, so its control says that it saw nothing.
    assert {check.name for check in whole.failed} == {"control"}
    done = run(python, program_of(python), "--json", "--cost", "--device", "cuda", env=env)
    costs = CostReport.parse(done.stdout.encode(), digest="sha256:" + "0" * 64)
    assert {cost.device for cost in costs.costs} == {"cpu", "cuda"}
