"""What the processes of a run kept, read in an order that is the same in each run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import integers

from reprobuild.errors import RepeatError
from reprobuild.in_image.twice import drawn_names
from reprobuild.twice import evidence as of_runs
from reprobuild.twice.derived_items import Item, SiteKey, spans
from reprobuild.twice.evidence import Evidence, read_evidence


def writer(*wrote: str, forks: int = 0, child: bool = False) -> dict[str, Any]:
    return {"wrote": list(wrote), "forks": forks, "child": child}


def kept(folder: Path, name: str, *process: str, **more: Any) -> None:
    table = {
        "format": 3, "process": list(process), "forked": False, "zone": 0, "memory": [], "names": {},
        "sites": [], "writer": writer(), **more,
    }  # fmt: skip
    (folder / f"{name}.evidence").write_text(json.dumps(table))


def read(folder: Path) -> Evidence:
    return read_evidence(folder, 0.0, 1.0)


def test_processes_count_by_their_names_and_not_by_who_ends_first(tmp_path: Path) -> None:
    site = [["text", "train.py", 3, 1, ["0.25"], []]]
    kept(tmp_path, "1", "", "Process-2", "train.py", names={"process numbers": ["52"]}, sites=site)
    kept(tmp_path, "2", "", "Process-1", "train.py", names={"process numbers": ["51"]}, sites=site)
    kept(tmp_path, "3", "", "MainProcess", "train.py", names={"process numbers": ["50"]})
    found = read(tmp_path)
    assert found.names["process numbers"] == ("50", "51", "52")
    assert [item.process for item in found.items] == [1, 2]


def test_a_worker_that_was_killed_before_it_kept_anything_changes_nothing_of_the_others(
    tmp_path: Path,
) -> None:
    assert drawn_names._BY_TURN == of_runs._BY_TURN
    kept(tmp_path, "1", "", "ForkPoolWorker-1", "train.py", names={"process numbers": ["51"]})
    kept(tmp_path, "2", "", "MainProcess", "train.py", names={"process numbers": ["50"]})
    before = read(tmp_path).parts["50"]
    (tmp_path / "1.evidence").unlink()
    assert read(tmp_path).parts["50"] == before


def test_what_workers_draw_is_not_known_by_its_turn(tmp_path: Path) -> None:
    """As those of a ProcessPoolExecutor, of which each gets some of the tasks."""
    own = {"uuids": ["a1b2c3d4e5f6"], "process numbers": ["4711"]}
    kept(tmp_path, "1", "", "ForkProcess-1", "train.py", names=own)
    kept(tmp_path, "2", "", "MainProcess", "train.py", names={"uuids": ["0a1b2c3d4e5f"]})
    kept(tmp_path, "3", "", "ForkProcess-2", "train.py", names={"process numbers": ["47"]})
    found = read(tmp_path)
    assert found.names == {
        "uuids": ("0a1b2c3d4e5f",),
        "threads' uuids": ("a1b2c3d4e5f6",),
        "pool workers": ("4711",),
        "process numbers": ("47",),  # which may be a result, too
    }
    assert found.works_beside


def test_lines_have_no_order_only_where_the_program_made_processes_of_its_own(tmp_path: Path) -> None:
    kept(tmp_path, "1", "", "MainProcess", "train.py")
    kept(tmp_path, "2", "", "MainProcess", "-c")
    assert not read(tmp_path).several
    kept(tmp_path, "1", "", "MainProcess", "train.py", forked=True)
    assert read(tmp_path).several
    kept(tmp_path, "1", "", "Process-1", "train.py")
    assert read(tmp_path).several


def test_lines_that_one_process_wrote_have_an_order_unless_another_is_not_known(tmp_path: Path) -> None:
    kept(tmp_path, "1", "", "MainProcess", writer=writer("stdout", "stderr", forks=1))
    assert not read(tmp_path).alone
    kept(tmp_path, "2", "", "Process-1", writer=writer("stderr", child=True))
    assert read(tmp_path).alone == {"stdout"}
    kept(tmp_path, "2", "", "Process-1", writer=writer(child=True))
    assert read(tmp_path).alone == {"stdout", "stderr"}


def test_a_place_of_many_values_takes_nothing_from_the_next() -> None:
    many, few = ("value", "train.py", 3, 0), ("value", "search.py", 5, 0)
    items = [Item(many, 1.0 + at, at, 999 - at) for at in range(1000)]
    items += [Item(few, 0.125 * 2**at, at, 5 - at) for at in range(6)]
    assert {item.site[1] for item in Evidence(items=items).made_of_some(0.375, 0.375)} == {"search.py"}


@given(integers(0, 4 * 10**15), integers(1, 10**11))
def test_what_two_dates_are_apart_prints_as_the_program_printed_it(began: int, took: int) -> None:
    """Also in the middle between two numbers of as many digits, where half of a millionth decides."""
    span = timedelta(microseconds=took - took % 10)
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=began)
    dates = zip((1, 2), (start, start + span), strict=True)
    sites = {place: [Item(place, date.timestamp(), 0, 0)] for line, date in dates for place in [at(line)]}
    printed = [
        f"{item.value:.5f} {item.value:.4f}" for item in spans(sites) if span and item.site[0] == "span"
    ]
    assert printed == [f"{span.total_seconds():.5f} {span.total_seconds():.4f}"] * bool(span)


def at(line: int) -> SiteKey:
    return ("moment", "train.py", line, 0)


@given(integers(0, 4 * 10**15), integers(1, 10**11))
def test_what_two_dates_are_apart_is_told_in_any_unit(began: int, took: int) -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=began)
    span = timedelta(microseconds=took)
    sites = {
        at(line): [Item(at(line), each.timestamp(), 0, 0)] for line, each in ((1, start), (2, start + span))
    }
    values = {item.value for item in spans(sites)}
    assert {span.microseconds, span // timedelta(milliseconds=1), span.total_seconds() // 1} <= values
    assert f"{span / timedelta(milliseconds=1):.1f}" in {f"{value:.1f}" for value in values}
    assert f"{span.total_seconds() / 60:.4f}" in {f"{value:.4f}" for value in values}


def test_more_than_twelve_places_may_ask_for_the_date() -> None:
    sites = {at(line): [Item(at(line), 1.7e9 + line, 0, 0)] for line in range(30)}
    assert 29.0 in {item.value for item in spans(sites)}


def test_a_message_of_a_log_tells_where_its_measured_numbers_stand(tmp_path: Path) -> None:
    message = "a\nstep 1: took \x0212\x03 s, \x02   3\x03 in all\nscore 12"
    kept(tmp_path, "1", "", "MainProcess", sites=[["message", "train.py", 7, 1, [message], []]])
    evidence = read(tmp_path)
    for before in ("", "12:00:01 INFO "):
        line = f"{before}step 1: took 12 s,    3 in all"
        found = [(line[begin:end], item.site[0]) for begin, end, item in evidence.written_in(line)]
        assert found == [("12", "message 1"), ("   3", "message 2")]
    assert not evidence.written_in("score 12")
    assert not evidence.written_in("step 1: took 13 s,    3 in all")
    assert not evidence.items


def test_a_whole_duration_is_told_in_hours_minutes_and_seconds(tmp_path: Path) -> None:
    kept(tmp_path, "1", "", "MainProcess", sites=[["whole", "train.py", 3, 2, [3725, 59], []]])
    told = {(item.site[0], item.at): item.value for item in read(tmp_path).items if item.site[0] != "whole"}
    names = ("hours of a whole", "minutes of a whole", "seconds of a whole", "whole minutes of a whole")
    assert [told[name, 0] for name in names] == [1, 2, 5, 62]
    assert [told[name, 1] for name in names] == [0, 0, 59, 0]


@pytest.mark.parametrize(
    "more",
    [
        {"zone": 10**12},
        {"zone": float("inf")},
        {"memory": [[0, 10**400]]},
        {"sites": [["value", "f", 1, 10**300, [1, 2], [3]]]},
        {"sites": [["whole", "f", 1, -5, [61, 1e7], [3]]]},
        {"sites": [["whole", "f", 1, 1, [61, 1e7], [3]]]},
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    kept(tmp_path, "1", "", "MainProcess", **more)
    with pytest.raises(RepeatError, match=r"cannot be read: 1\.evidence: "):
        read(tmp_path)


@pytest.mark.parametrize(
    "site",
    [
        ["value", "f", 1, 3, [1e308, 1e308, 1e308], []],
        ["value", "f", 1, 3, [1e200, -1e200, 5], []],
        ["value", "f", 1, 2, [10**400, 1], []],
        ["moment", "f", 1, 2, [0, 1e308], []],
    ],
)
def test_a_number_that_nobody_measures_is_left_out(tmp_path: Path, site: list[Any]) -> None:
    kept(tmp_path, "1", "", "MainProcess", sites=[site])
    found = read(tmp_path)
    assert all(abs(float(item.value)) < 1e30 for item in found.items)
    assert found.made_of_some(5.0, 5.0) is not None


def test_of_a_drawn_number_no_part_is_recognized_but_for_zeros_before_it() -> None:
    """Of a few thousand of them some part is like any number of six digits."""
    drawn = Evidence(names={"drawn numbers": ("00386ab", "231083", "123456789012")})
    names = {"00386ab", "0386ab", "231083", "123456789012"}
    assert drawn.parts == dict.fromkeys(names, ("drawn numbers", 0))


def test_names_that_threads_draw_have_no_order() -> None:
    uuid = "a" * 31 + "b"
    drawn = Evidence(names={"uuids": ("c" * 32, uuid), "threads' uuids": ("d" * 32, "e" * 32)})
    assert [drawn.parts[each] for each in (uuid, "d" * 32, "e" * 32)] == [
        ("uuids", 1), ("threads' uuids", 0), ("threads' uuids", 0),
    ]  # fmt: skip


def test_a_million_drawn_names_take_little_memory(tmp_path: Path) -> None:
    names = {"uuids": [f"{number:0200x}" for number in range(100_000)]}
    kept(tmp_path, "1", "", "MainProcess", names=names)
    found = read(tmp_path)
    assert len(found.names["uuids"]) < 5000
    assert len(found.parts) < 2_000_000
