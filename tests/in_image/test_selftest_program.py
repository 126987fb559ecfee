"""The program that runs in the image: as a process, with and without torch, whole and broken."""

from __future__ import annotations

import ast
import json
import re
import shutil
from pathlib import Path

import pytest
from torch_python import FILES, image_environment, make_venv, program_of, run

import reprobuild.in_image.selftest.command_line  # noqa: F401 -- the checks are registered
from reprobuild.in_image.selftest.registry import (
    CHECKS,
    GOLDEN,
    WITHIN,
)
from reprobuild.selftest.agreement import compare
from support.selftest_program import CORES, failed, report

# Stand-ins that let a process get as far as the checks' own errors.
FAKE_NUMPY = {"numpy/__init__.py": ""}


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


# --- How rare a deviation is found ---


# --- Packages with compiled code ---


# --- What two interpreters saw ---


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


def test_each_process_that_the_program_waits_for_has_a_time_limit() -> None:
    """One that hangs, as on a GPU that fell off its bus, would hang the whole test."""
    waiting = {"run", "call", "check_call", "check_output", "communicate"}
    calls = [
        (path.name, call.lineno, {keyword.arg for keyword in call.keywords})
        for path in (FILES / "selftest").glob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in waiting
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("subprocess", "process")
    ]
    assert len(calls) > 4
    assert [(name, line) for name, line, given in calls if "timeout" not in given] == []
