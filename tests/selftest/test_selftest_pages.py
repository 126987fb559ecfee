"""The page of a fleet and the plot of costs, as text and in a real browser."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reprobuild.selftest.fleet import Fleet, Machine, fleet
from reprobuild.selftest.pages import COLOURS, cost_plot, fleet_page
from support.browser import browse, colours, dom
from support.reports import HASH, NOT_MEASURED, OTHER, a_cost, costs, floats, parse_cost, report, with_bits

HOSTILE = "<script>alert(1)</script>&\"'\u202etxt\x1b[31m\ud800"


def a_fleet(third: str = OTHER) -> Fleet:
    cells = [("one", HASH, 1.0), ("two", HASH, 1.0), (HOSTILE, third, 1.0 + 2.0**-20)]
    return fleet(
        [
            Machine(
                name=name,
                report=report(with_bits(bits, values={"output": floats(value)}), with_bits(HASH, name="bmm")),
            )
            for name, bits, value in cells
        ]
    )


def test_the_page_loads_nothing_and_is_the_same_every_time() -> None:
    page = fleet_page(a_fleet())
    assert page == fleet_page(a_fleet())
    assert not re.search(rb"""(src|href)=["'](?!data:,)|url\(""", page)
    assert b"<script" not in page
    assert b"\x1b" not in page
    assert "\u202e" not in page.decode()
    links = set(re.findall(rb"https?://[^\"' ]*", page))
    assert links <= {b"http://www.w3.org/2000/svg"}  # a name, not an address to load


@pytest.mark.slow
def test_the_browser_shows_who_deviates(tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    page.write_bytes(fleet_page(a_fleet()))
    shown = dom(page)
    assert '<p id="verdict" class="bad">' in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in shown
    table = shown.partition('<table id="bits"')[2].partition("</table>")[0]
    rows = [re.findall(r">([^<>]+)</t[dh]>", row) for row in table.split("<tr>")[1:]]
    assert rows[1:] == [["conv2d", "kind", "A", "A", "B"], ["bmm", "kind", "A", "A", "A"]]
    assert shown.count("<circle") == 3
    assert shown.count('stroke="#c00"') == 1
    seen = colours(page, tmp_path / "page.png")
    assert seen[0xCC, 0, 0] > 200  # the deviating cell, and the ring around its mark
    assert seen[_rgb(COLOURS[1])] > 40  # the second machine's swatch
    assert seen[255, 255, 255] > 1_000_000


@pytest.mark.slow
def test_the_browser_shows_that_all_agree(tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    page.write_bytes(fleet_page(a_fleet(third=HASH)))
    said = browse(page, "--dump-dom", "--enable-logging=stderr")
    assert "No machine deviates from its own kind." in said.stdout
    assert "deviations" not in said.stdout
    assert "CONSOLE" not in said.stderr
    assert colours(page, tmp_path / "page.png")[0xCC, 0, 0] == 0


@pytest.mark.slow
def test_the_plot_of_costs_has_a_bar_for_each_that_was_measured(tmp_path: Path) -> None:
    plot = cost_plot(parse_cost(costs(a_cost(), a_cost(name="matmul", ratio=1.0), NOT_MEASURED)))
    root = ET.fromstring(plot)
    bars = root.findall(".//{*}rect[@class='bar']")
    assert [bar.get("width") for bar in bars] == ["620.0", "310.0"]
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"index_put", "2.00", "matmul", "1.00"} <= {*texts}
    assert "sort" not in texts
    file = tmp_path / "cost.svg"
    file.write_bytes(plot)
    seen = colours(file, tmp_path / "plot.png")
    # In the proportion of the ratios, but for the grid that crosses them.
    assert 1.9 < seen[_rgb("#d55e00")] / seen[_rgb("#0072b2")] < 2.1


@pytest.mark.parametrize("count", [0, 1])
def test_a_plot_of_little_is_a_plot(count: int) -> None:
    ET.fromstring(cost_plot(parse_cost(costs(NOT_MEASURED, *[a_cost()] * count))))


def _rgb(colour: str) -> tuple[int, int, int]:
    number = int(colour[1:], 16)
    return number >> 16, number >> 8 & 0xFF, number & 0xFF
