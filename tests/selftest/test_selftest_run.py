"""The host's side of the self-test: real processes stand for the container, honest and otherwise."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import HostError, SelfTestError
from reprobuild.host import process
from reprobuild.in_image.selftest import machine
from reprobuild.render.own_files import selftest_files
from reprobuild.selftest.report import SCHEMA, Mismatch, SelfTestReport
from reprobuild.selftest.run import PYTHON, command, run_selftest
from support.reports import DIGEST, FAILED, HASH, Script, a_check, a_report, parse_report, printing

PROGRAM = {"selftest.py": b"import sys; print(sys.argv[1:])"}

# --- run_selftest ---


def test_a_good_image_passes_and_is_named_by_its_digest() -> None:
    runner = Script(printing(a_report()))
    report = run_selftest(runner, program=PROGRAM, gpu="off")
    assert report.passed
    assert report.digest == DIGEST
    assert report.gpu_reason == "turned off by --gpu off"
    argv, gpu = runner.calls[0]
    assert argv[:2] == (PYTHON, "-I")
    assert argv[5:8] == ("--json", "--device", "cpu")
    assert gpu is False


def test_a_failed_check_is_a_report_that_names_it_and_what_differed() -> None:
    report = run_selftest(
        Script(printing(a_report(a_check(name="bmm"), FAILED), status=1)), program=PROGRAM, gpu="off"
    )
    assert not report.passed
    assert [check.name for check in report.failed] == ["conv2d"]
    assert report.failed[0].detail == (Mismatch(what="output", expected="c" * 64, got="d" * 64),)
    assert report.failures() == [
        "conv2d: two processes differ",
        f"  output: expected {'c' * 64}, got {'d' * 64}",
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "wrote no report"),
        ("print('rubbish')", "not JSON"),
        ("print('{}')", "names no schema"),
        ("print('[' * 100_000)", "not JSON"),
        ("import sys; sys.stdout.buffer.write(bytes([255, 254, 0]))", "not JSON"),
        (f"print({json.dumps(a_report())!r}[:-20])", "not JSON"),
        (f"print({json.dumps(a_report())!r} + '\\n{{}}')", "not JSON"),
        (printing(a_report(), status=1), "contradicts its exit status"),
        (printing(a_report(FAILED), status=0), "contradicts its exit status"),
        (printing(a_report(), status=3), "contradicts its exit status"),
        (printing(a_report(mode="prove")), "contradicts its exit status"),
        (printing(a_report(), status=4), "crashed"),
        ("raise RuntimeError('libcudart is missing')", "libcudart is missing"),
        ("import os; os.kill(os.getpid(), 11)", "(exit status -11)"),
        ("import sys; sys.exit(127)", "(exit status 127)"),
    ],
)
def test_anything_but_a_whole_report_is_an_error(code: str, message: str) -> None:
    with pytest.raises(SelfTestError) as caught:
        run_selftest(Script(code), program=PROGRAM, gpu="off")
    assert message in caught.value.message


def test_the_end_of_standard_error_is_in_the_message_and_a_kill_gets_a_hint() -> None:
    code = "import os; os.write(2, b'a\\nthe last words'); os.kill(os.getpid(), 9)"
    with pytest.raises(SelfTestError, match="the last words") as caught:
        run_selftest(Script(code), program=PROGRAM, gpu="off")
    assert "memory" in caught.value.hint


def test_how_far_it_has_come_is_two_numbers_whatever_a_candidate_writes() -> None:
    lines = "selftest: check 1 of 60\nselftest: check 2 of \x1b[2J\nselftest: check 14 of 60\n"
    said: list[str] = []
    code = f"import sys; sys.stderr.write({lines!r}); " + printing(a_report())
    run_selftest(Script(code), program=PROGRAM, gpu="off", say=said.append)
    assert said[-1] == "check 14 of 60"
    assert set(said) <= {"check 1 of 60", "check 14 of 60"}
    dying = Script(f"import sys; sys.exit({lines!r} + 'the last words')")
    with pytest.raises(SelfTestError) as caught:
        run_selftest(dying, program=PROGRAM, gpu="off")
    assert "check 14" not in caught.value.message
    assert "the last words" in caught.value.message


def test_a_hanging_program_is_stopped() -> None:
    with pytest.raises(SelfTestError, match=r"did not end within 0\.3 s"):
        run_selftest(Script("import time; time.sleep(60)"), program=PROGRAM, gpu="off", time_limit=0.3)


def test_the_program_stops_itself_before_the_container_is_stopped() -> None:
    runner = Script(printing(a_report()))
    run_selftest(runner, program=PROGRAM, gpu="off", time_limit=300)
    assert runner.calls[0][0][-2:] == ("--time-limit", "285")


@pytest.mark.parametrize(
    ("gpu", "missing", "device", "handed_in", "reason"),
    [
        ("auto", None, "auto", True, "why"),
        ("auto", "no driver", "cpu", False, "no driver"),
        ("require", None, "cuda", True, "why"),
        ("off", None, "cpu", False, "turned off by --gpu off"),
    ],
)
def test_when_a_gpu_is_handed_in(
    gpu: Any, missing: str | None, device: str, handed_in: bool, reason: str
) -> None:
    runner = Script(printing(a_report(gpu={"tested": False, "reason": "why"})), missing=missing)
    report = run_selftest(runner, program=PROGRAM, gpu=gpu)
    argv, had = runner.calls[0]
    assert argv[argv.index("--device") + 1] == device
    assert had is handed_in
    assert report.gpu_reason == reason


def test_a_required_gpu_that_is_missing_is_the_hosts_fault_and_starts_nothing() -> None:
    runner = Script("", missing="no driver is loaded")
    with pytest.raises(HostError, match="no driver is loaded"):
        run_selftest(runner, program=PROGRAM, gpu="require")
    assert runner.calls == []


def test_the_program_is_handed_in_and_finds_what_it_reads_beside_it(tmp_path: Path) -> None:
    """For real, with the image's folder and the container's /tmp in the places of both."""
    image, inside = tmp_path / "image", tmp_path / "tmp"
    image.mkdir()
    (image / "constraints.txt").write_text("torch==1\n")
    (image / "selftest.py").write_text("raise SystemExit('the image's own program ran')")
    (image / "golden.json").write_text("forged")
    code = (
        "import pathlib, sys; here = pathlib.Path(__file__).parent;"
        "print(sys.argv[1:], sys.flags.isolated, *sorted(p.name for p in here.iterdir()));"
        "print((here / 'golden.json').read_text(), (here / 'constraints.txt').read_text())"
    )
    files = {"selftest.py": code.encode(), "golden.json": '{"µ": 1}'.encode()}
    _, *argv = [
        text.replace("/tmp/reprobuild-selftest", str(inside)).replace("/opt/reprobuild", str(image))
        for text in command(files)
    ]
    done = process.run([sys.executable, *argv, "--json", "--device", "cpu"])
    assert done.stdout.decode().splitlines() == [
        "['--json', '--device', 'cpu'] 0 constraints.txt golden.json selftest.py",
        '{"µ": 1} torch==1',
        "",
    ]


def test_the_program_fits_into_arguments() -> None:
    """The kernel takes 128 KiB for one argument, and 2 MiB for all."""
    assert max(map(len, command(selftest_files()))) < 96 << 10


# --- SelfTestReport ---


def test_a_report_keeps_all_that_it_was_read_from() -> None:
    unsure = a_check(name="control", status="inconclusive", reason="saw nothing")
    table = a_report(a_check(name="matmul"), FAILED, unsure)
    report = parse_report(table)
    again = json.loads(json.dumps(report.to_dict()))
    assert again.pop("image") == DIGEST
    assert again == table
    assert parse_report(again) == report
    assert SelfTestReport.parse_kept(json.dumps(report.to_dict()).encode()) == report


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ([], "report: not an object"),
        (a_report() | {"schema": 1}, "schema is 1"),
        (a_report() | {"mode": "cost"}, "report.mode: 'cost'"),
        (a_report() | {"extra": 1}, "report.extra: unknown key"),
        ({k: v for k, v in a_report().items() if k != "gpu"}, "report.gpu: missing"),
        (a_report() | {"seconds": "6"}, "report.seconds"),
        (a_report() | {"seconds": True}, "report.seconds"),
        (a_report() | {"gpu": {"tested": 1, "reason": ""}}, "report.gpu.tested"),
        (a_report() | {"checks": []}, "no check was run"),
        (a_report(a_check(status="not-run")), "no check was run"),
        (
            a_report() | {"checks": ["x"]},
            "report.checks[0]: expected an object",
        ),
        (a_report(a_check(status="fine")), "report.checks[0].status: 'fine'"),
        (a_report(a_check(), a_check(device="tpu")), "report.checks[1].device: 'tpu'"),
        (a_report(a_check(results={"output": HASH + "\n"})), "report.checks[0]"),
        (a_report(a_check(fingerprint="B" * 64)), "report.checks[0]"),
        (a_report(a_check(fingerprint=None)), "report.checks[0]"),
        (
            a_report(a_check(), a_check(name="matmul", fingerprint=HASH)),
            "report.checks[1].fingerprint: that of 'matmul' is not the one of its results",
        ),
        (a_report(a_check(results={}, fingerprint=HASH)), "report.checks[0].fingerprint"),
        (a_report(a_check(scope="all")), "report.checks[0].scope: 'all'"),
        (a_report(a_check(values={"output": {"type": "float32"}})), "report.checks[0].values.output.data"),
        (a_report(a_check(detail=[{"what": "output"}])), "report.checks[0].detail[0].expected: missing"),
        (a_report() | {"program": "f00"}, "report.program: 'f00' is not a SHA-256"),
        (a_report(FAILED) | {"verdict": "passed"}, "the verdict 'passed'"),
        (a_report() | {"verdict": "maybe"}, "the verdict 'maybe'"),
        (a_report(FAILED) | {"verdict": "maybe"}, "the verdict 'maybe'"),
    ],
)
def test_a_report_that_is_not_whole_is_refused_by_place(table: object, place: str) -> None:
    with pytest.raises(SelfTestError) as caught:
        parse_report(table)
    assert place in caught.value.message


def test_some_checks_alone_are_a_report_of_a_part_that_must_say_so() -> None:
    runner = Script(printing(a_report() | {"mode": "part"}))
    assert run_selftest(runner, program=PROGRAM, gpu="off", only=["conv2d", "bmm"]).mode == "part"
    ((argv, _),) = runner.calls
    assert argv[-3:] == ("--only", "conv2d", "bmm")
    for mode, only in (("battery", ["conv2d"]), ("part", [])):
        with pytest.raises(SelfTestError, match="contradicts"):
            run_selftest(Script(printing(a_report() | {"mode": mode})), program=PROGRAM, gpu="off", only=only)


# --- The two sides agree ---


def test_the_program_and_the_host_agree_on_the_schema() -> None:
    assert machine.SCHEMA == SCHEMA
