"""The program that runs in the image: as a process, with and without torch, whole and broken."""

from __future__ import annotations

import io
import itertools
import json
import multiprocessing
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch_python import image_environment, make_venv, program_of, run, write_program

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest import child, machine, nvml, power, ranks, subnormals
from reprobuild.in_image.selftest.names import CUDA_LIBRARY
from reprobuild.in_image.selftest.outcomes import Failed, Outcome
from reprobuild.in_image.selftest.parent import judge
from reprobuild.in_image.selftest.registry import (
    ACROSS,
    CHECKS,
    CONTROL,
    GOLDEN,
    SETTING,
    WITHIN,
    Check,
    in_order,
)
from reprobuild.in_image.selftest.text import cost_text
from reprobuild.selftest.agreement import compare
from reprobuild.selftest.cost import CostReport
from reprobuild.selftest.report import SelfTestReport
from reprobuild.selftest.run import EXIT

CORES = len(os.sched_getaffinity(0))
# Stand-ins that let a process get as far as the checks' own errors.
FAKE_NUMPY = {"numpy/__init__.py": ""}


def report(python: Path, *options: str, env: Mapping[str, str] | None = None) -> SelfTestReport:
    done = run(python, program_of(python), "--json", *options, env=env)
    parsed = SelfTestReport.parse(done.stdout.encode(), digest="sha256:" + "0" * 64)
    assert done.returncode == EXIT[parsed.verdict]
    return parsed


def failed(found: SelfTestReport) -> set[str]:
    return {check.name for check in found.failed}


# --- Without torch ---


def test_an_image_without_torch_fails_by_name_with_a_traceback(tmp_path: Path) -> None:
    found = report(make_venv(tmp_path / "venv", torch=False))
    assert failed(found) == {"imports"}
    check = found.failed[0]
    assert "No module named" in check.reason
    assert "ModuleNotFoundError" in check.traceback
    assert {c.status for c in found.checks[1:]} == {"not-run"}


def test_a_process_that_dies_fails_the_check_it_was_in(tmp_path: Path) -> None:
    files = {**FAKE_NUMPY, "torch.py": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"}
    found = report(make_venv(tmp_path / "venv", torch=False, files=files))
    assert [(check.name, check.reason) for check in found.failed] == [
        ("imports", "the process was ended by SIGSEGV in this check")
    ]


def test_a_process_that_hangs_fails_the_check_it_was_in(tmp_path: Path) -> None:
    files = {**FAKE_NUMPY, "torch.py": "import time; time.sleep(60)"}
    found = report(make_venv(tmp_path / "venv", torch=False, files=files), "--time-limit", "4")
    assert [(check.name, check.reason) for check in found.failed] == [
        ("imports", "the time limit passed in this check")
    ]


def test_what_a_library_prints_is_not_in_the_report(tmp_path: Path) -> None:
    files = {**FAKE_NUMPY, "torch.py": "import os; os.write(1, b'rubbish'); raise ImportError"}
    python = make_venv(tmp_path / "venv", torch=False, files=files)
    done = run(python, program_of(python), "--json")
    assert json.loads(done.stdout)["verdict"] == "failed"
    assert "rubbish" in done.stderr
    assert re.search(r"selftest: check 1 of \d+$", done.stderr, re.MULTILINE)


def test_a_gpu_that_is_asked_for_and_missing_fails(tmp_path: Path) -> None:
    found = report(make_venv(tmp_path / "venv", torch=False), "--device", "cuda")
    assert ("gpu", "cuda") in {(check.name, check.device) for check in found.failed}


def test_the_list_needs_no_torch_and_names_every_check_in_its_order(tmp_path: Path) -> None:
    done = run(Path(sys.executable), write_program(tmp_path), "--list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [check.name for check in in_order()]


@pytest.mark.parametrize("arguments", [["--only", "conv9d"], ["--device", "tpu"], ["rest"]])
def test_bad_arguments_are_refused(arguments: list[str], tmp_path: Path) -> None:
    assert run(Path(sys.executable), write_program(tmp_path), *arguments).returncode == 2


def test_the_text_names_what_failed(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=False)
    done = run(python, program_of(python))
    assert done.returncode == 1
    assert done.stdout.startswith("failed       cpu   imports")
    assert done.stdout.splitlines()[-1].startswith("failed in ")


def test_every_check_says_its_order() -> None:
    orders = [check.order for check in in_order()]
    assert len(set(orders)) == len(orders)
    names = [check.name for check in in_order()]
    # The imports and the hook are what all others need; a seed is seen in the state of the start; a fork is
    # safe only while torch has started no threads.
    assert names[:5] == ["imports", "setting-hook", "setting-environment", "setting-seed", "ranks-gloo"]


def test_every_check_says_what_it_proves_and_how_it_compares() -> None:
    for check in CHECKS.values():
        assert check.proves
        assert "\n" not in check.proves
        assert check.compares
        assert {*check.compares} <= {SETTING, WITHIN, ACROSS, GOLDEN, CONTROL}
        assert {*check.devices} <= {"cpu", "cuda"}


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("libcudart.so.12", "cudart"),
        ("libcudart-9335f6a2.so.12", "cudart"),
        ("libcublasLt.so.12", "cublasLt"),
        ("libcudnn_engines_precompiled.so.9", "cudnn_engines_precompiled"),
        ("libnvrtc.so.12", "nvrtc"),
        ("libnvrtc-builtins.so.12.1", "nvrtc-builtins"),
        ("libnccl.so.2", "nccl"),
        ("libcufftw.so.11", "cufftw"),
        ("libnvToolsExt.so.1", "nvToolsExt"),
        ("libnvshmem_host.so.3", "nvshmem_host"),
        ("libcudnn.so.9", "cudnn"),
        ("libcuda.so.550.54", None),  # the driver's come from the host
        ("libnvidia-ptxjitcompiler.so.1", None),
        ("libtorch_cuda.so", None),
    ],
)
def test_a_cuda_library_is_told_by_its_file(file: str, library: str | None) -> None:
    match = CUDA_LIBRARY.fullmatch(file)
    assert (match[1] if match else None) == library


# --- How rare a deviation is found ---


def test_the_power_of_calls_is_that_of_the_binomial_distribution() -> None:
    assert (power.calls_for(1 / 20), power.calls_for(1 / 200)) == (90, 919)
    assert 1 - (1 - power.rate_for(90)) ** 90 == pytest.approx(0.99)


@pytest.fixture
def repeats() -> Iterator[power.Repeats]:
    yield power.REPEATED
    power.REPEATED.set_for("battery")
    power.REPEATED.made = 1


@pytest.mark.parametrize(("mode", "rate"), [("battery", 1 / 20), ("full", 1 / 200)])
def test_a_check_repeats_as_often_as_its_mode_needs(mode: str, rate: float, repeats: power.Repeats) -> None:
    repeats.set_for(mode)
    calls = itertools.count()

    def run() -> dict[str, bytes]:
        next(calls)
        return {"a": b"1"}

    assert power.steady(run) == {"small a": b"1"}
    assert next(calls) == repeats.made
    assert power.rate_for(power.RUNS * repeats.made) <= rate


def test_one_call_that_differs_is_named(repeats: power.Repeats) -> None:
    results = iter([b"1"] * 4 + [b"2"] * 30)
    with pytest.raises(Failed, match="call 5 of 23 differs from the first") as caught:
        power.steady(lambda: {"a": next(results)})
    assert [line["what"] for line in caught.value.detail] == ["a"]


# --- Packages with compiled code ---


def test_packages_with_compiled_code_are_found_by_their_files() -> None:
    found = set(subnormals.compiled_packages())
    assert "zstandard" in found
    assert not found & {"pytest", "torch", "numpy"}


def test_an_import_that_fails_or_dies_is_told_and_the_rest_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dies_.py").write_text("import os; os._exit(3)")
    (tmp_path / "raises_.py").write_text("print('a\\tkept'); raise OSError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert subnormals.import_each(["json", "raises_", "dies_", "zstandard"]) == {
        "json": "kept",
        "raises_": "not imported: OSError",
        "dies_": "not imported: the import ended the process with status 3",
    }


# --- What two interpreters saw ---

COMPARED = Check("bmm", "", (WITHIN, ACROSS), ("cpu",), CHECKS["bmm"].run)
CONTROLLED = Check("control", "", (CONTROL,), ("cpu",), CHECKS["control"].run)
ONE, OTHER = Outcome("passed", results={"a": "1", "b": "2"}), Outcome("passed", results={"a": "1", "b": "3"})
BAD, NONE, UNSURE = Outcome("failed", "bad"), Outcome("not-run", "none"), Outcome("inconclusive", "unsure")


@pytest.mark.parametrize(
    ("check", "first", "second", "status", "reason"),
    [
        (COMPARED, ONE, ONE, "passed", ""),
        (COMPARED, ONE, OTHER, "failed", "two processes differ"),
        (COMPARED, ONE, Outcome("passed", results={"a": "1"}), "failed", "two processes differ"),
        (COMPARED, ONE, BAD, "failed", "bad"),
        (COMPARED, BAD, ONE, "failed", "bad"),
        (COMPARED, NONE, NONE, "not-run", "none"),
        (COMPARED, ONE, NONE, "failed", "passed in one process, not-run in the other"),
        (COMPARED, None, ONE, "not-run", "a process had ended before"),
        (COMPARED, BAD, None, "failed", "bad"),
        (COMPARED, None, None, "not-run", "a process had ended before"),
        (CONTROLLED, UNSURE, ONE, "passed", ""),
        (CONTROLLED, UNSURE, UNSURE, "inconclusive", "unsure"),
        (CONTROLLED, UNSURE, BAD, "failed", "bad"),
    ],
)
def test_one_outcome_is_made_of_two(
    check: Check, first: Outcome | None, second: Outcome | None, status: str, reason: str
) -> None:
    outcome = judge(check, first, second, processors=1)
    assert (outcome.status, outcome.reason) == (status, reason)


def test_a_control_that_sees_nothing_on_two_processors_fails_the_image() -> None:
    """On one there is nothing to race; --prove, which is about the machine, stays inconclusive on any."""
    assert judge(CONTROLLED, UNSURE, UNSURE, processors=2).status == "failed"
    assert judge(CONTROLLED, UNSURE, ONE, processors=2).status == "passed"
    proof = replace(CONTROLLED, part="prove")
    assert judge(proof, UNSURE, UNSURE, processors=2).status == "inconclusive"


def test_the_kernels_of_torch_2_0_are_known_by_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    old = SimpleNamespace(
        backends=SimpleNamespace(),
        __config__=SimpleNamespace(show=lambda: "PyTorch built with:\n  - CPU capability usage: AVX2\n"),
    )
    monkeypatch.setattr(machine, "torch", old)
    assert machine.cpu_capability() == "AVX2"


def test_what_differs_between_processes_is_named() -> None:
    assert judge(COMPARED, ONE, OTHER, processors=1).detail == [{"what": "b", "expected": "2", "got": "3"}]


def test_costs_as_text_have_a_line_each_and_the_reason_of_those_not_measured() -> None:
    line = {"device": "cpu", "on": 0.004, "off": 0.002, "ratio": 2.0, "reason": ""}
    missing = {"name": "sort", "device": "cuda", "reason": "RuntimeError: no"}
    gpu = {"tested": False, "reason": "no driver"}
    text = cost_text({"costs": [{"name": "index_put", **line}, missing], "gpu": gpu})
    assert [" ".join(each.split()) for each in text.splitlines()] == [
        "device operation on off on/off",
        "cpu index_put 4.000 ms 2.000 ms 2.00",
        "cuda sort RuntimeError: no",
        "GPU not measured: no driver",
    ]


REASONS = {
    "one-cuda-copy: another folder's": "loaded from outside PREFIX: FOLDER/other/libcudnn.so.9",
    "subnormals: flushed by torch": "this process turns subnormal numbers into zero",
    "subnormals: a package flushes them": (
        "once flushing is imported, the process turns subnormal numbers into zero"
    ),
    "attention: memory runs out": "it crashed: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "requested-imports: a module is missing": "cannot be imported: nonsense",
    "linked-cuda: another major version": "built for another CUDA: audio",
    "setting-hook: turned off": "the import hook is turned off: REPROBUILD_DETERMINISM is off",
}
"""Of some cases of sabotage.py: what the check must say."""


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (None, "no answer within 90 s"),
        (3, "it ended with status 3 before it had answered"),
        (-11, "it ended by SIGSEGV before it had answered"),
    ],
)
def test_a_rank_that_takes_too_long_is_told_from_one_that_died(status: int | None, reason: str) -> None:
    receiving, _sending = multiprocessing.Pipe(duplex=False)
    process = SimpleNamespace(exitcode=status, join=lambda _: None)
    with pytest.raises(RuntimeError, match=f"^rank 1: {reason}$"):
        ranks.answer_of(1, receiving, process)


def test_no_gpu_is_looked_for_before_the_ranks_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that is forked after cuInit cannot use CUDA, and the step of an optimizer asks for it."""
    seen: list[str] = []

    def went(name: str, result: Any) -> Any:
        seen.append(name)
        return result

    monkeypatch.setattr(child, "fill_memory", lambda: None)
    monkeypatch.setattr(child, "gpu_missing", lambda: went("GPU", ""))
    monkeypatch.setattr(child, "facts", lambda reason: {"gpu": reason})
    monkeypatch.setattr(child, "execute", lambda check, _: went(check.name, Outcome("passed")))
    child.child(io.StringIO(), ["imports", "setting-hook", "ranks-gloo", "ranks-nccl", "matmul"], "auto")
    assert seen[:4] == ["imports", "setting-hook", "ranks-gloo", "GPU"]
    seen.clear()
    report = io.StringIO()
    child.child(report, ["imports", "ranks-gloo"], "auto")
    assert (seen[-1], '{"gpu": ""}' in report.getvalue()) == ("GPU", True)


class FakeLibrary:
    """Answers as NVML does: a status, and what was asked for in the last argument."""

    def __init__(self, **answers: int | tuple[int, int]) -> None:
        self.answers = answers

    def driver(self, text: Any, _: Any) -> int:
        text.value = b"580.159.04"
        return 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name == "nvmlSystemGetDriverVersion":
            return self.driver
        if name == "nvmlDeviceGetHandleByPciBusId_v2":
            return lambda bus, _: int(bus != b"0000:00:06.0")
        if name not in self.answers:
            raise AttributeError(name)
        given = self.answers[name]
        status, value = given if isinstance(given, tuple) else (0, given)

        def answer(*arguments: Any) -> int:
            place = next(each for each in arguments if hasattr(each, "_obj"))
            place._obj.value = value
            return status

        return answer


def test_what_the_gpu_is_set_to_is_told_and_unknown_is_null() -> None:
    management = nvml.Management()
    management.library = FakeLibrary(
        nvmlDeviceGetEccMode=1,
        nvmlDeviceGetMigMode=(3, 0),
        nvmlDeviceGetComputeMode=3,
        nvmlDeviceGetMaxClockInfo=1980,
        nvmlDeviceGetEnforcedPowerLimit=(999, 0),
    )
    assert management.driver() == "580.159.04"
    assert management.settings("0000:00:06.0") == {
        "ecc": "on",
        "mig": "not supported",
        "compute_mode": "exclusive process",
        "max_sm_mhz": 1980,
        "power_limit_mw": None,
    }
    assert set(management.settings("0000:00:07.0").values()) == {None}
    management.library = None
    assert (management.driver(), set(management.settings("0000:00:06.0").values())) == (None, {None})


def test_mps_is_told_by_its_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    assert nvml.shared_by_mps() == "off"
    (tmp_path / "control").touch()
    monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25")
    assert nvml.shared_by_mps() == "on, 25 % of the threads"


# --- With torch ---


@pytest.mark.slow
@pytest.mark.torch
def test_a_clean_image_passes_every_check(tmp_path: Path) -> None:
    found = report(make_venv(tmp_path / "venv", torch=True), "--device", "cpu")
    statuses = {check.name: check.status for check in found.checks}
    assert found.passed, found.failures()
    mine = {name for name, check in CHECKS.items() if "cpu" in check.devices and check.part != "prove"}
    assert set(statuses) == mine
    assert statuses.pop("control") == ("passed" if CORES > 1 else "inconclusive")
    # What there is no case for outside an image; sabotage.py sees them fail.
    absent = {"setting-seed", "setting-environment", "setting-versions", "setting-files", "one-cuda-copy"}
    absent |= {"requested-imports", "linked-cuda", "setting-kernels"}
    absent |= {name for name, check in CHECKS.items() if check.part == "full"}
    absent |= {name for name, check in CHECKS.items() if GOLDEN in check.compares}  # of an unknown torch
    assert {name for name, status in statuses.items() if status != "passed"} <= absent
    assert all(c.fingerprint for c in found.checks if WITHIN in c.compares and c.status == "passed")
    assert found.scope["cpu"]["threads"] == 1


@pytest.mark.slow
@pytest.mark.torch
def test_the_portable_profile_is_another_kind_of_machine_and_is_in_effect(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    only = ["setting-profile", "setting-threads", "matmul", "attention", "python-seed"]
    strict = report(python, "--device", "cpu", "--only", *only)
    found = report(python, "--device", "cpu", "--only", *only, env=image_environment("portable"))
    assert found.failures() == []
    cpu = found.scope["cpu"]
    assert (cpu["capability"], cpu["mkl_cbwr"], cpu["onednn_max_cpu_isa"]) == ("AVX2", "COMPATIBLE", "AVX2")
    states = {each.name: each.state for each in compare(strict, found)}
    assert states == {"matmul": "not comparable", "attention": "not comparable", "python-seed": "equal"}


@pytest.mark.slow
@pytest.mark.torch
def test_results_that_hang_on_the_process_are_found_across_processes(tmp_path: Path) -> None:
    # Each process is in itself steady: only the comparison of the two can see it.
    noise = """
import os, sys
if "--child" in sys.orig_argv:
    import torch
    plain, unit = torch.bmm, 2.0 ** -23
    torch.bmm = lambda a, b: plain(a, b) * (1 + unit * (os.getpid() % 1000 + 1))
"""
    files = {"zz_noise.pth": "import zz_noise", "zz_noise.py": noise}
    python = make_venv(tmp_path / "venv", torch=True, files=files)
    env = image_environment(PYTHONHASHSEED="random", TORCHINDUCTOR_USE_FAST_MATH="1")
    only = ["bmm", "matmul", "hash-seed", "setting-hash-seed", "setting-forbidden", "setting-threads"]
    found = report(python, "--only", *only, env=env)
    assert failed(found) == {"bmm", "hash-seed", "setting-hash-seed", "setting-forbidden"}
    reasons = {check.name: check.reason for check in found.failed}
    assert reasons["bmm"] == reasons["hash-seed"] == "two processes differ"


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("how", ["removed", "off"])
def test_an_image_without_the_hook_fails_on_its_settings(tmp_path: Path, how: str) -> None:
    python = make_venv(tmp_path / "venv", torch=True, hook=how != "removed")
    settings = ["setting-deterministic", "setting-cudnn", "setting-fill", "setting-threads", "raises"]
    env = image_environment(REPROBUILD_DETERMINISM="off" if how == "off" else None)
    found = report(python, "--only", *settings, env=env)
    assert failed(found) == {"setting-deterministic", "setting-cudnn", "setting-fill", "raises"}


@pytest.mark.slow
@pytest.mark.torch
def test_an_image_whose_hook_is_gone_fails_by_that_cause_alone(tmp_path: Path) -> None:
    found = report(make_venv(tmp_path / "venv", torch=True, hook=False), "--device", "cpu")
    (cause,) = found.failed
    assert (cause.name, cause.reason.partition(" in ")[0]) == (
        "setting-hook",
        "the import hook is gone: reprobuild.pth is not",
    )
    reasons = {check.name: check.reason for check in found.checks if check.status == "not-run"}
    hooked = {name for name, check in CHECKS.items() if check.hooked and check.part == "battery"}
    assert {name for name, reason in reasons.items() if reason == cause.reason} == hooked


@pytest.mark.slow
@pytest.mark.torch
def test_every_check_has_been_seen_to_fail(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    script = Path(__file__).with_name("sabotage.py")
    done = run(python, script, program_of(python), tmp_path)
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace(str(python.parents[1]), "PREFIX").replace(str(tmp_path), "FOLDER")
    outcomes: dict[str, tuple[str, str]] = json.loads(text)
    clean = {
        case.removeprefix("clean: "): said for case, said in outcomes.items() if case.startswith("clean: ")
    }
    assert [name for name, (status, _) in clean.items() if status == "failed"] == []
    broken = {case: said for case, said in outcomes.items() if not case.startswith("clean: ")}
    unseen = {case: said for case, said in broken.items() if said[0] != "failed"}
    # A control that sees nothing is not a failure of the image; nor is it ever passed.
    assert {status for status, _ in unseen.values()} == {"inconclusive"}
    assert set(unseen) == {case for case in broken if case.endswith(": nothing to see")}
    assert {case: reason for case, (_, reason) in broken.items() if case in REASONS} == REASONS
    never = {name for name, check in CHECKS.items() if "cpu" in check.devices} - {
        c.split(":")[0] for c in broken
    }
    assert never == {"imports"}, "broken without torch, above"
    assert len(broken) >= 20


@pytest.mark.slow
@pytest.mark.torch
def test_what_takes_longer_runs_with_full_and_is_named_without(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    longer = {name for name, check in CHECKS.items() if check.part == "full" and "cpu" in check.devices}
    found = report(python, "--device", "cpu", "--full", "--only", *longer)
    statuses = {check.name: (check.status, check.reason) for check in found.checks}
    assert statuses["dataloader-spawn"][0] == "passed"
    if statuses["compiled"][0] != "passed":  # a machine without a compiler says so
        status, reason = statuses["compiled"]
        assert status == "not-run"
        assert reason.startswith("torch.compile needs ")
        lacking = 'apt = ["g++"' if shutil.which("g++", path=image_environment()["PATH"]) is None else "-dev"
        assert lacking in reason
    assert {*longer} <= statuses.keys()


@pytest.mark.slow
@pytest.mark.torch
def test_prove_passes_only_where_each_control_saw_nondeterminism(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    found = report(python, "--device", "cpu", "--prove")
    assert found.mode == "prove"
    controls = {check.name: check.status for check in found.checks if check.name != "imports"}
    assert set(controls) == {n for n, c in CHECKS.items() if c.part == "prove" and "cpu" in c.devices}
    racing = {"prove-index-put", "prove-indexing"}  # one core has nothing to race with, and then says so
    unsure = {name for name, status in controls.items() if status != "passed"}
    assert unsure == (set() if CORES > 1 else racing)
    assert found.verdict == ("passed" if CORES > 1 else "inconclusive")


@pytest.mark.slow
@pytest.mark.torch
def test_a_control_that_saw_nothing_is_never_passed(tmp_path: Path) -> None:
    steady = (
        "import sys\nif '--child' in sys.orig_argv:\n    import random\n    random.random = lambda: 0.5\n"
    )
    files = {"zz_steady.pth": "import zz_steady", "zz_steady.py": steady}
    python = make_venv(tmp_path / "venv", torch=True, files=files)
    found = report(python, "--prove", "--only", "prove-python-seed", "prove-numpy-seed")
    assert found.verdict == "inconclusive"
    assert not found.passed
    (unsure,) = [check for check in found.checks if check.status == "inconclusive"]
    assert unsure.name == "prove-python-seed"
    assert unsure.reason.startswith("50 runs with determinism off did not differ")


@pytest.mark.slow
@pytest.mark.torch
def test_costs_are_ratios_of_one_run(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    done = run(python, program_of(python), "--json", "--device", "cpu", "--cost")
    found = CostReport.parse(done.stdout.encode(), digest="")
    assert len(found.costs) > 15
    for cost in found.costs:
        assert cost.reason == "", cost
        assert cost.on
        assert cost.off
        assert cost.ratio
        assert abs(cost.ratio - cost.on / cost.off) < 1e-3
        assert cost.rounds >= 10
