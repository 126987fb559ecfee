"""A report is taken again for the same bytes in the same circumstances, and for nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.selftest.last_report import circumstances, forget, keep, kept
from reprobuild.selftest.report import SelfTestReport
from support.reports import DIGEST, FAILED, Script, a_report, parse_report

PROGRAM = {"selftest.py": b"print()"}
WHERE = "a" * 64


def report(*checks: dict[str, object], **changes: object) -> SelfTestReport:
    return replace(parse_report(a_report(*checks, **changes)), digest=DIGEST)


def test_what_passed_is_taken_again(tmp_path: Path) -> None:
    keep(report(), tmp_path, WHERE)
    assert kept(DIGEST, tmp_path, WHERE) == report()


def test_in_other_circumstances_it_is_not(tmp_path: Path) -> None:
    keep(report(), tmp_path, WHERE)
    assert kept(DIGEST, tmp_path, "b" * 64) is None
    assert kept(DIGEST, tmp_path, None) is None
    assert kept(DIGEST.replace("a", "b"), tmp_path, WHERE) is None


def test_what_failed_and_what_no_later_build_may_trust_is_not(tmp_path: Path) -> None:
    keep(report(FAILED), tmp_path, WHERE)
    assert kept(DIGEST, tmp_path, WHERE) is None
    keep(report(), tmp_path, None)
    assert kept(DIGEST, tmp_path, WHERE) is None
    keep(report(), tmp_path, WHERE)
    keep(report(FAILED), tmp_path, None)
    assert kept(DIGEST, tmp_path, WHERE) is None
    keep(report(), tmp_path, WHERE)
    forget(DIGEST, tmp_path)
    assert kept(DIGEST, tmp_path, WHERE) is None


def test_another_mode_s_report_is_kept_beside_it(tmp_path: Path) -> None:
    keep(report(), tmp_path, WHERE)
    keep(report(mode="full"), tmp_path, WHERE)
    assert kept(DIGEST, tmp_path, WHERE) == report()
    assert (tmp_path / f"{DIGEST[7:]}-full.json").exists()


def test_damage_is_found(tmp_path: Path) -> None:
    keep(report(), tmp_path, WHERE)
    (file,) = tmp_path.glob("*.json")
    good = file.read_bytes()
    for bad in (good[:-1], good.replace(b"passed", b"failed", 1), b"", b"\xff"):
        file.write_bytes(bad)
        assert kept(DIGEST, tmp_path, WHERE) is None
    file.write_bytes(good)
    (seal,) = tmp_path.glob("*.seal")
    for wrong in (b"", b"\xff\n", WHERE.encode()):
        seal.write_bytes(wrong)
        assert kept(DIGEST, tmp_path, WHERE) is None
    seal.unlink()
    os.mkfifo(seal)
    assert kept(DIGEST, tmp_path, WHERE) is None


def test_all_that_an_outcome_depends_on_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Script("")

    def found(runner: Script = here, kind: str = "oci") -> str | None:
        return circumstances(runner, kind, program=PROGRAM, gpu="auto")

    each = [
        found(),
        found(replace(here, where="elsewhere")),
        found(replace(here, missing=None)),
        found(kind="docker"),
        circumstances(here, "oci", program={"selftest.py": b""}, gpu="auto"),
        circumstances(here, "oci", program=PROGRAM, gpu="off"),
    ]
    assert found() == each[0]
    monkeypatch.setenv("REPROBUILD_MEMORY", "3G")
    each.append(found())
    assert len({*each}) == len(each)
    assert found(replace(here, where=None)) is None


def test_without_a_gpu_nobody_looks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Script("")
    monkeypatch.setattr(runner, "gpu_missing", lambda: pytest.fail("asked"))
    assert circumstances(runner, "oci", program=PROGRAM, gpu="off") is not None
