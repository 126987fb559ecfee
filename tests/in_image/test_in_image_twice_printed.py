"""Where in a printed line the measured numbers stand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprobuild.in_image.twice import measured, printed
from reprobuild.in_image.twice.measured import Float, Int
from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import verdict
from support.twice import compared

LASTED = Float(0.25)


@pytest.fixture
def line() -> Iterator[printed._Line]:
    measured.sites.clear()
    measured.recent.clear()
    yield printed._Line()
    measured.sites.clear()
    measured.recent.clear()


def put(line: printed._Line, *texts: str) -> list[tuple[str, str]]:
    """Write texts one after the other; return the kept lines with their kinds."""
    for text in texts:
        recent = list(measured.recent)
        measured.recent.clear()
        line.add(text, recent)
    kept = [site for site in measured.sites.values() if site.kind in ("message", "printed")]
    return [
        (site.kind, str(each).replace("\x02\x04", "?<").replace("\x02", "<").replace("\x03", ">"))
        for site in kept
        for each in site.first
    ]


def test_a_measured_number_is_marked_among_others(line: printed._Line) -> None:
    assert put(line, f"acc 0.26 took {LASTED:.2f} s\n") == [("printed", "acc 0.26 took <0.25> s")]
    assert put(line, f"a {LASTED:.4f} b 1\nc 0.3\n")[1:] == [("message", "a <0.2500> b 1")]


def test_a_line_may_come_in_parts(line: printed._Line) -> None:
    put(line, "step", " ", "3", " ")
    assert put(line, str(Float(12.75)), "\n", "next\n") == [("message", "step 3 <12.75>")]


def test_nothing_is_marked_where_it_might_be_another_number(line: printed._Line) -> None:
    assert put(line, f"acc 0.25 took {LASTED:.2f} s\n") == []
    assert put(line, f"acc 0.25 took {LASTED:.2f} s at {Float(12.5):.3f}/s\n") == [
        ("message", "acc ?<0.25> took ?<0.25> s at <12.500>/s")
    ]
    measured.sites.clear()
    f"{LASTED:.2f} {Float(0.5):.2f}"
    assert put(line, "acc 0.25\n") == []
    assert put(line, f"{LASTED:.2f}\r") == []
    assert put(line, f"10.25 0.250 took {LASTED:.2f} s\n") == [("printed", "10.25 0.250 took <0.25> s")]


def test_a_long_number_may_have_gone_into_a_file(line: printed._Line) -> None:
    assert len(f"{Float(0.12345)}") == 7
    assert put(line, f"acc 0.26 took {LASTED:.2f} s\n") == [("printed", "acc 0.26 took <0.25> s")]


def test_the_thousandths_of_a_time_of_day_are_a_part_of_it(line: printed._Line) -> None:
    written = put(line, f"12:30:05.{Int(682):03d} at {LASTED:.2f}\n")
    assert written == [("printed", "12:30:05.682 at <0.25>")]
    measured.sites.clear()
    f"{Int(68):d}"
    assert put(line, f"took {LASTED:.2f}\n") == []


PROGRAM = """
import json, logging, os, random, sys, time
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
start = time.perf_counter()
score = int.from_bytes(os.urandom(3), "big") if sys.argv[1:] else 12
for step in range(5):
    time.sleep(0.01 + random.SystemRandom().random() / 50)
    wall = round((time.perf_counter() - start) * 100, 0)
    stats = {"step": step, "wall": wall, "ups": round(1000 * (step + 1) / wall, 2), "score": score}
    logging.info(json.dumps({key: str(value) for key, value in stats.items()}))
"""


@pytest.mark.parametrize(("said", "expected"), [((), ("text", "repeats")), (("result",), ("parts",))])
def test_a_short_time_is_known_by_its_place_in_the_line(
    said: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = compared(sys.executable, [str(program), *said], tmp_path, how=HowToRun(times=8, trace=False))
    assert verdict(found) in expected, found.ends
