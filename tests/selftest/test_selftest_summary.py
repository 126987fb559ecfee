"""The summary of a self-test for people."""

from __future__ import annotations

from reprobuild.selftest.summary import summary
from support.reports import FAILED, a_check, a_report, parse_report


def power(calls: int, rate: float, checks: str = "1 check") -> str:
    return f"{calls} calls in {checks} catch a deviation in 1 of {rate} calls with 99 % confidence"


def test_the_summary_says_what_was_checked_and_why_the_rest_was_not() -> None:
    checks = [
        a_check(),
        a_check(name="bmm", calls=92, rate=0.0488, device="cpu"),
        a_check(name="batches", notes=["a row depends on its batch in: linear"]),
        a_check(name="control", status="inconclusive", reason="one core", calls=0, rate=None),
        a_check(name="one-cuda-copy", status="not-run", reason="no CUDA", calls=0, rate=None),
    ]
    assert summary(parse_report(a_report(*checks)), power=True) == [
        ("tested", "passed in 6.5 s on Some CPU, AVX2, 1 thread"),
        ("checked", "on CPU: conv2d, bmm, batches"),
        ("unsure", "control: one core"),
        ("not run", "one-cuda-copy: no CUDA"),
        ("batches", "on CPU: a row depends on its batch in: linear"),
        (
            "power",
            power(92, 20.5) + "; " + power(4, 1.5, "2 checks"),
        ),
        ("GPU", "not tested: asked for the CPU only"),
    ]


def test_the_summary_names_the_gpu_and_what_failed() -> None:
    scope = {
        "cpu": {"model": "C", "capability": "AVX2", "threads": 4},
        "gpu": {"name": "G", "driver": "550.1"},
    }
    tested = a_report(FAILED, a_check(device="cuda"), scope=scope, gpu={"tested": True, "reason": ""})
    assert summary(parse_report(tested), power=True) == [
        ("tested", "FAILED in 6.5 s on C, AVX2, 4 threads"),
        ("failed", "on CPU: conv2d"),
        ("power", power(4, 1.5, "2 checks")),
        ("GPU", "tested on G, driver 550.1: conv2d"),
    ]
