"""Hashes of texts that hold the time or a drawn name."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from reprobuild.in_image.twice import drawn_names
from reprobuild.in_image.twice.hashes import HASH, without_run
from reprobuild.twice import evidence
from reprobuild.twice.report import verdict
from support.twice import compared

NOW = 1_796_000_000.5
DAY = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(NOW))


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"{NOW}", "<time>"),
        (f"run-{int(NOW)}-seed3", "run-<time>-seed3"),
        (f"{int(NOW * 1e9)}", "<time>"),
        (f"started {DAY}.123456, loss 0.25", "started <time>, loss 0.25"),
        (DAY.replace("-", "").replace("T", "_").replace(":", ""), "<time>"),
        (time.strftime("%Y-%m-%d %H:%M", time.gmtime(NOW)), "<time>"),
        *((each, each) for each in (f"{NOW + 90}", f"{NOW - 5000}", "2024-03-01T12:00", f"9{int(NOW)}")),
        *((each, each) for each in ("loss=0.1796000000", "0000-99-99 99:99", "9999-99-99T99:99:99")),
    ],
)
def test_times_of_this_run_are_left_out_of_a_text(text: str, rest: str) -> None:
    assert without_run(text, NOW - 30, NOW) == rest


def test_drawn_names_are_left_out_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_names, "_names", {"uuids": ["6f1c0a4e-1111-4222-8333-444455556666"]})
    assert without_run("run 6f1c0a4e-1111-4222-8333-444455556666", NOW, NOW) == "run <name>"
    other = "run 7f1c0a4e-1111-4222-8333-444455556666"
    assert without_run(other, NOW, NOW) == other


def test_the_recorder_s_kind_of_a_hash_is_known() -> None:
    assert evidence._HASH == HASH


NAMED = """
import hashlib, sys, time
run = hashlib.sha1(f"{time.time()}-0.25".encode()).hexdigest()[:10]
print(f"run {run}: loss 0.25")
open(f"model-{run}.txt", "w").write("0.25")
"""
HIDES = """
import hashlib, random, time
print(hashlib.sha1(f"{time.time()} {random.random()}".encode()).hexdigest())
"""
COMPUTED = NAMED + "print(int(hashlib.md5(str(time.time_ns()).encode()).hexdigest(), 16) % 1000)"


USED = """
import hashlib, hmac, pickle
again = pickle.loads(pickle.dumps(hashlib.sha256))
made = hashlib.new("sha256", b"abc")
assert again(b"abc").digest() == made.digest() == hashlib.sha256(b"abc", usedforsecurity=False).digest()
assert isinstance(hashlib.blake2b(b"abc"), hashlib.blake2b)
print(hmac.new(b"key", b"abc", hashlib.sha256).hexdigest(), made.hexdigest())
"""


@pytest.mark.slow
def test_a_program_s_hashes_are_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(USED)
    found = compared(sys.executable, [str(path)], tmp_path)
    assert (verdict(found), found.runs[0].status) == ("repeats", 0)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "expected"), [(NAMED, "text"), (COMPUTED, "parts"), (HIDES, "parts")])
def test_a_run_may_be_named_by_a_hash_of_the_time_and_what_is_computed_of_it_counts(
    program: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(program)
    assert verdict(compared(sys.executable, [str(path)], tmp_path)) == expected
