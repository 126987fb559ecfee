"""The command ``selftest``: its modes, its comparisons, its exit statuses."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest import GOLDEN
from reprobuild.engines.embedded import OciEngine
from reprobuild.host.home import Home
from reprobuild.layers.image_documents import documents
from reprobuild.lock.reader import parse_lock
from reprobuild.render.image_config import image_config
from support.hosts import quiet_host
from support.reports import (
    FAILED,
    HASH,
    NOT_MEASURED,
    OTHER,
    Script,
    a_check,
    a_cost,
    a_report,
    costs,
    printing,
    with_bits,
)

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands"]

NAME = "reprobuild/torch:1"


@pytest.fixture
def digest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An image that has documents and no layers, under `NAME`."""
    lock = parse_lock((GOLDEN / "pylock.torch-cu121.toml").read_text(), "golden")
    images = OciEngine(quiet_host()).images
    digest = images.add(documents(lock, image_config(lock), []))
    images.name(digest, NAME)
    return digest


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it with what the container prints, and its exit status; it returns the list of its calls."""

    def put(table: object, status: int = 0) -> list[tuple[tuple[str, ...], bool]]:
        calls: list[tuple[tuple[str, ...], bool]] = []

        def runner(_: OciEngine, digest: str) -> Script:
            return Script(printing(table, status), digest=digest, calls=calls)

        monkeypatch.setattr(OciEngine, "runner", runner)
        return calls

    return put


def written(folder: Path, name: str, *checks: dict[str, Any], **changes: Any) -> str:
    (folder / name).write_text(json.dumps(a_report(*checks, **changes)))
    return name


# --- Modes ---


def test_full_runs_all_and_keeps_its_report(digest: str, runs: Any, call: Call) -> None:
    calls = runs(a_report(mode="full"))
    said = call("selftest", NAME, "--full", "--json")
    assert said.status == 0
    assert json.loads(said.out)["mode"] == "full"
    assert "--full" in calls[0][0]
    kept = Home.from_environment().folder("reports") / f"{digest[7:]}-full.json"
    assert json.loads(kept.read_text()) == json.loads(said.out)


def test_prove_is_passed_failed_or_inconclusive(digest: str, runs: Any, call: Call) -> None:
    runs(a_report(mode="prove"))
    assert call("selftest", NAME, "--prove").out.splitlines()[1].startswith("proved   passed in")
    unsure = a_check(name="control", status="inconclusive", reason="50 runs did not differ")
    runs(a_report(a_check(), unsure, mode="prove", verdict="inconclusive"), 3)
    said = call("selftest", NAME, "--prove")
    assert said.status == 9
    assert "proved   inconclusive in" in said.out
    assert "unsure   control: 50 runs did not differ" in said.out
    assert "proves nothing" in said.err
    runs(a_report(FAILED, mode="prove"), 1)
    said = call("selftest", NAME, "--prove")
    assert said.status == 9
    assert "failed its self-test (conv2d)" in said.err


def test_a_program_that_answers_for_another_mode_is_not_believed(digest: str, runs: Any, call: Call) -> None:
    runs(a_report())
    said = call("selftest", NAME, "--prove")
    assert (said.status, said.out) == (9, "")
    assert "contradicts" in said.err


def test_cost_is_a_table_and_a_plot(digest: str, runs: Any, call: Call, folder: Path) -> None:
    calls = runs(costs(a_cost(), NOT_MEASURED))
    said = call("selftest", NAME, "--cost", "-o", "cost.svg")
    assert said.status == 0
    assert "--cost" in calls[0][0]
    lines = [line.split() for line in said.out.splitlines()]
    assert lines[1] == ["index_put", "cpu", "4.000", "ms", "2.000", "ms", "2.00", "█" * 16]
    assert lines[2] == ["sort", "cpu", "-", "-", "-", "RuntimeError:", "no"]
    assert lines[-1] == ["plot:", "cost.svg"]
    ET.fromstring((folder / "cost.svg").read_bytes())
    again = call("selftest", NAME, "--cost", "--json")
    assert json.loads(again.out)["image"] == digest
    runs(costs(), 1)
    assert call("selftest", NAME, "--cost").status == 9


# --- Comparisons ---


def test_against_a_report_of_the_same_kind(digest: str, runs: Any, call: Call, folder: Path) -> None:
    runs(a_report(with_bits(HASH)))
    file = written(folder, "before.json", with_bits(HASH))
    said = call("selftest", NAME, "--against", file)
    assert said.status == 0
    assert "equal    1 of 1 checks" in said.out
    file = written(folder, "before.json", with_bits(OTHER))
    said = call("selftest", NAME, "--against", file)
    assert said.status == 9
    assert "differs  conv2d: output; 0 ULP at most" in said.out
    assert f"{NAME} gives other bits than before.json on the same kind of machine: conv2d" in said.err
    table = json.loads(call("selftest", NAME, "--against", file, "--json").out)
    assert [each["state"] for each in table["agreements"]] == ["differs"]
    assert table["report"]["image"] == digest


def test_against_a_report_of_another_kind(digest: str, runs: Any, call: Call, folder: Path) -> None:
    runs(a_report(with_bits(HASH), with_bits(HASH, name="bmm")))
    scope = {"cpu": {"model": "X", "capability": "AVX512", "threads": 1}, "gpu": None}
    file = written(folder, "x.json", with_bits(OTHER), with_bits(HASH, name="bmm"), scope=scope)
    said = call("selftest", NAME, "--against", file)
    assert said.status == 0
    text = " ".join(said.out.split())
    assert "not comparable 2 checks, which depend on what differs: CPU: X (None) and Some CPU (None);" in text
    assert "conv2d: other bits; 0 ULP at most in the values kept" in text
    assert "bmm: the same bits nevertheless" in text


def test_against_takes_the_image_of_the_report_or_a_second_report(
    digest: str, runs: Any, call: Call, folder: Path
) -> None:
    runs(a_report(with_bits(HASH)))
    (folder / "kept.json").write_text(call("selftest", NAME, "--json").out)
    assert "equal" in call("selftest", "--against", "kept.json").out
    first = written(folder, "first.json", with_bits(HASH))
    assert "equal" in call("selftest", first, "--against", "kept.json").out
    said = call("selftest", "--against", first)
    assert said.status == 2
    assert "first.json names no image" in said.err


def test_against_names_what_one_report_has_alone_and_a_self_test_that_failed(
    call: Call, folder: Path
) -> None:
    both, bmm = with_bits(HASH), with_bits(HASH, name="bmm")
    first = written(folder, "first.json", both, bmm)
    second = written(folder, "second.json", both, with_bits(HASH, name="lstm"))
    said = call("selftest", second, "--against", first)
    assert said.status == 0
    text = " ".join(said.out.split())
    assert "not compared these have results in first.json alone: bmm" in text
    assert "not compared these have results in second.json alone: lstm" in text
    table = json.loads(call("selftest", second, "--against", first, "--json").out)
    assert [(each["name"], each["in"]) for each in table["unmatched"]] == [
        ("bmm", "against"),
        ("lstm", "report"),
    ]
    failed = written(folder, "failed.json", both, {**bmm, "status": "failed", "reason": "differs"})
    for argv in ((failed, "--against", first), (first, "--against", failed)):
        said = call("selftest", *argv)
        assert (said.status, "failed.json failed its self-test (bmm)" in said.err) == (9, True)


# --- Bad input ---


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "pass one image"),
        (["a", "b"], "pass one image"),
        (["--fleet", "a.json"], "two reports or more"),
        (["--fleet", "a.json", "a.json"], "listed more than once"),
        (["--fleet", "--prove", "a.json", "b.json"], "--fleet only compares"),
        (["x", "-o", "y.html"], "-o needs"),
        (["x", "--prove", "--against", "a.json"], "--prove gives none"),
    ],
)
def test_arguments_that_make_no_sense(argv: list[str], message: str, call: Call, folder: Path) -> None:
    written(folder, "a.json")
    said = call("selftest", *argv)
    assert (said.status, said.out) == (2, "")
    assert message in said.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "wrote no report"),
        ("rubbish", "not JSON"),
        (json.dumps(a_report(image="latest")), "'latest' is not a digest"),
        (json.dumps(costs()), "'cost' is not a valid mode"),
    ],
)
def test_a_file_that_is_no_report_is_named(text: str, message: str, call: Call, folder: Path) -> None:
    (folder / "bad.json").write_text(text)
    written(folder, "a.json")
    for argv in (["--fleet", "a.json", "bad.json"], ["a.json", "--against", "bad.json"]):
        said = call("selftest", *argv)
        assert (said.status, said.out) == (2, "")
        assert re.search(f"bad.json: .*{re.escape(message)}.*writes a report", said.err)
        assert not (folder / "fleet.html").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "No such file or directory"),
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "not a regular file"),
    ],
)
def test_a_report_that_is_no_file(
    make: Callable[[Path], None], message: str, call: Call, folder: Path
) -> None:
    written(folder, "a.json")
    make(folder / "none.json")
    for argv in (["--fleet", "a.json", "none.json"], ["a.json", "--against", "none.json"]):
        said = call("selftest", *argv)
        assert (said.status, said.out) == (2, "")
        assert f"none.json: {message}; " in said.err


def test_a_page_that_cannot_be_written(call: Call, folder: Path) -> None:
    files = [written(folder, f"{name}.json") for name in "ab"]
    said = call("selftest", "--fleet", *files, "-o", "no/such/page.html")
    assert (said.status, said.out) == (11, "")
