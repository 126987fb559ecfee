"""Which numbers of a clock are followed, and which computation makes a result of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reprobuild.in_image.twice import evidence, measured
from reprobuild.in_image.twice.measured import Float, FloatInstant, Int, IntInstant

START, NOW = FloatInstant(1795657966.25), FloatInstant(1795657968.5)
NS = IntInstant(1795657968500000001)
LASTED = Float(83.25)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (NOW - START, Float(2.25)),
        (NOW + LASTED, FloatInstant(1795658051.75)),
        (NOW + 5, FloatInstant(1795657973.5)),
        (NOW - 1795657968, Float(0.5)),
        (1795657969 - NOW, Float(0.5)),
        (NOW * 1000, FloatInstant(1795657968500.0)),
        (NS // 10**6, IntInstant(1795657968500)),
        (NS / 1e9, FloatInstant(1795657968.5)),
        (round(NOW), IntInstant(1795657968)),
        (IntInstant(10**18 + 4) - IntInstant(10**18 + 1), Int(3)),
        (Int(3_000_000) / 1e6, Float(3.0)),
        (LASTED * 1e3, Float(83250.0)),
        (1000 / LASTED, Float(1000 / 83.25)),
        (LASTED + LASTED / 2, Float(124.875)),
        (0.9 * LASTED + 0.1 * LASTED, Float(0.9 * 83.25 + 0.1 * 83.25)),
        (LASTED + 1e-9, Float(83.25 + 1e-9)),
        (sum([LASTED, LASTED]), Float(166.5)),
        (LASTED // 60, Float(1.0)),
        (LASTED % 60, Float(23.25)),
        (LASTED - 60 * 1, Float(23.25)),
        (LASTED - int(LASTED), Float(0.25)),
        (5000 // LASTED, Float(60.0)),
        (LASTED**0.5, Float(83.25**0.5)),
    ],
)
def test_what_a_quantity_allows_is_followed(value: Any, expected: Any) -> None:
    assert (type(value), float(value)) == (type(expected), float(expected))


def test_a_sum_in_c_is_a_duration_of_durations_alone() -> None:
    times = [Float(0.25), Float(0.5)]
    assert type(measured.gathered(times, 0.75)) is Float
    assert type(measured.gathered(LASTED, 9.1)) is Float
    assert type(measured.gathered([*times, 0.25], 1.0)) is float
    assert type(measured.gathered([START, NOW], Float(1.0))) is float


def test_the_parts_of_a_duration_are_followed() -> None:
    assert [type(each) for each in divmod(LASTED, 60)] == [Float, Float]
    assert [type(each) for each in divmod(NOW, 60)] == [float, float]


@pytest.mark.parametrize(
    "value",
    [
        NOW % 1,
        NS % 1000,
        NS % 1000 / 1000,
        0.5 - 0.1 * (0.5 - NOW % 1),
        0.1 + LASTED,
        LASTED + 1,
        3600 - LASTED,
        32 + LASTED * 1e6 % 100,
        sum([NOW % 1, 0.25, 0.5]) / 3,
        NOW + NOW,
        NOW / 7,
        1 / NOW,
        LASTED % 7,
        LASTED // 7,
        0.9**LASTED,
        pow(IntInstant(5), 2, 7),
    ],
)
def test_a_clock_as_a_source_of_data_gives_a_result(value: Any) -> None:
    assert type(value) in (int, float)


def test_a_process_that_is_killed_while_it_writes_leaves_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROBUILD_TWICE", str(tmp_path))
    monkeypatch.setattr(evidence, "_written", [])
    monkeypatch.setattr(measured, "sites", {})

    def killed(table: object, file: Any) -> None:
        file.write('{"format"')
        file.flush()
        assert not list(tmp_path.glob("*.evidence"))
        raise SystemExit

    whole = json.dump
    monkeypatch.setattr(json, "dump", killed)
    with pytest.raises(SystemExit):
        evidence.write()
    assert not list(tmp_path.glob("*.evidence"))
    monkeypatch.setattr(json, "dump", whole)
    monkeypatch.setattr(evidence, "_written", [])
    evidence.write()
    [path] = tmp_path.glob("*.evidence")
    assert json.loads(path.read_bytes())["sites"] == []


@pytest.mark.parametrize(("value", "expected"), [(LASTED, 83.25), (NS, int(NS)), (83.25, None), ("8", None)])
def test_a_measured_number_as_a_plain_one(value: Any, expected: Any) -> None:
    found = measured.plain(value)
    assert (found, type(found)) == (expected, type(expected))


def test_places_of_one_line_are_kept_apart() -> None:
    before = dict(measured.sites)
    for value in ("1", "2"):
        measured.note_at(("train.py:3", 0, "text"), "text", value, "train.py", 3)
        measured.note_at(("train.py:3", 1, "text"), "text", value * 2, "train.py", 3)
    found = [site for key, site in measured.sites.items() if key not in before]
    assert [(site.line, site.first) for site in found] == [(3, ["1", "2"]), (3, ["11", "22"])]
