"""The form of a line, and what its words say of a number."""

from __future__ import annotations

import pytest

from reprobuild.twice.evidence import Evidence
from reprobuild.twice.line_forms import (
    by_form,
    column_of,
    columns_of_measure,
    is_layout,
    is_of_measure,
    is_told_by_time,
    outline,
    regions_apart,
    template,
)
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.text_tokens import tokens


def test_rows_of_a_table_have_one_outline() -> None:
    rows = ["normal  50  mean    0.016 0.28", "heavy  800  huber  -0.016 12.5"]
    assert template(rows[0]) != template(rows[1])
    assert outline(rows[0]) == outline(rows[1])
    assert by_form(rows)[outline(rows[0])] == rows
    assert outline("normal 50 mean 0.016 0.28 1") != outline(rows[0])


@pytest.mark.parametrize(
    ("line", "at", "measured"),
    [
        ("took 3 rows 4", 0, True),
        ("took 3 rows 4", 1, False),
        ("train_wall 3", 0, True),
        ("wallet 3", 0, False),
        ("cpu 3 core", 0, True),
        ("cpu.stats3.loads 7", 0, False),
        ("cpu.stats31.loads 7", 0, False),
    ],
)
def test_the_words_since_the_number_before_count(line: str, at: int, *, measured: bool) -> None:
    read = tokens(line, Evidence())
    numbers = [place for place, token in enumerate(read) if token.kind == "number"]
    assert is_of_measure(read, numbers[at]) == measured


@pytest.mark.parametrize(
    ("head", "row", "found"),
    [
        ("epoch,time/fps,loss", "3.5,467,0.5", [1]),
        ("epoch,time/fps,loss", "3,-467,0.5", [1]),
        ("epoch,time/fps,loss", '"a, b",467,0.5', []),
        ("epoch,loss,time_elapsed", "3,,12", [2]),
        ("epoch,time/fps,loss", "3,a467,0.5", []),
        ("1,2,3", "3,467,0.5", []),
        ("time/iterations,time/total_timesteps,loss", "3.5,467,0.5", []),
    ],
)
def test_a_table_says_in_its_first_line_which_columns_are_measured(
    head: str, row: str, found: list[int]
) -> None:
    read = tokens(row, Evidence())
    places = [column_of(read, at) for at, token in enumerate(read) if token.kind == "number"]
    assert [at for at in places if at in columns_of_measure(head)] == found


@pytest.mark.parametrize(
    ("one", "other", "layout"),
    [
        (["  results", "┏━━┳━━━┓"], [" results", "┏━━┳━━┓"], True),
        (["  results", "┏━━┳━━━┓"], [" results", "┏━━┳━━━┓"], False),
        (["  results", "┏━━┳━━━┓"], [" result", "┏━━┳━━┓"], False),
        (["  results 1", "┏━━┳━━━┓"], [" results 1", "┏━━┳━━┓"], False),
        (["   *", "loss"], ["  *", "loss"], False),
        (["┏━━┳━━━┓"], ["┏━━┳━━┓"], True),
        (["┃ a ┃ it/s ┃", "┡━━━╇━━━━━━┩"], ["┃ a ┃ it/s  ┃", "┡━━━╇━━━━━━━┩"], True),
        (["┃ a ┃ 1 ┃", "┡━━━╇━━━━━━┩"], ["┃ a ┃ 1  ┃", "┡━━━╇━━━━━━━┩"], False),
        (["┏━━┳━━━┓"], ["┏━━┳━━┳━┓"], False),
        (["1.0 ┤╭──╮"], ["1.0 ┤╭───╮"], False),
        (["╭──╯"], ["╭───╯"], False),
        (["   run  loss", "0  calm-owl  0.5"], ["  run  loss", "0  owl  0.5"], True),
        (["0    owl  0.5", "1 calm-owl 0.5"], ["0  owl  0.5", "1 big-owl 0.5"], True),
        (["   run  loss", "0  owl  0.5"], ["  run  loss", "0  owl  0.5"], False),
        (["   run  loss", "0  owl  0.5"], ["  run  loss", "0  fox  0.5"], False),
        (["   run  loss", "", "0  calm-owl"], ["  run  loss", "", "0  owl"], False),
        (["   run  lost", "0  calm-owl  0.5"], ["  run  loss", "0  owl  0.5"], False),
    ],
)
def test_a_table_is_as_wide_as_its_numbers(one: list[str], other: list[str], layout: bool) -> None:
    assert is_layout(one, other, 0) == layout


BASH = ["real\t0m3.271s", "user\t0m2.900s", "sys\t0m0.310s"]
POSIX = ["real 3.27", "user 2.90", "sys 0.31"]
GNU = [
    "1.04user 0.11system 0:01.20elapsed 95%CPU (0avgtext+0avgdata 123456maxresident)k",
    "0inputs+0outputs (0major+1234minor)pagefaults 0swaps",
]


@pytest.mark.parametrize("lines", [BASH, POSIX, GNU])
def test_what_the_command_time_writes_is_known_by_all_of_its_lines(lines: list[str]) -> None:
    other = [line.replace("1", "2").replace("3", "4") for line in lines]
    a, b = (["loss 0.5", *each, "end"] for each in (lines, other))
    texts = (a, b)
    for at in range(len(texts[0])):
        assert is_told_by_time(texts[0], texts[1], at) is (0 < at <= len(lines))
    for gone in range(len(lines)):
        assert not is_told_by_time(texts[0], [*texts[1][: gone + 1], *texts[1][gone + 2 :]], 1)
    number, found = Texts(Evidence(), Evidence()).compare(a, b, "standard error", many=False)
    assert (number, len(found)) == (None, sum(a != b for a, b in zip(lines, other, strict=True)))
    texts[1][0] = "loss 0.6"
    assert Texts(Evidence(), Evidence()).compare(a, b, "standard error", many=False)[0] == 0


def test_only_the_middle_of_two_long_lines_is_put_side_by_side() -> None:
    """Else one of 10,000 words, such as a file of JSON, takes many minutes."""
    words = " ".join(f"w{'x' * (at % 7)} {at}" for at in range(2000))
    for other, least, most in (
        (words.replace("1000 ", "1000 word "), 1, 3),
        (
            words.replace(" 500 ", " word ").replace(" 1500 ", " word "),
            2000,
            5000,
        ),  # not the same, nor put so
    ):
        pair = [tokens(line, Evidence()) for line in (words, other)]
        regions = regions_apart(pair[0], pair[1])
        assert len(regions) == 1
        assert least <= max(map(len, regions[0])) <= most
        (left, right) = regions[0]
        ends = [
            [token.text for token in (*side[: each.start], *side[each.stop :])]
            for side, each in zip(pair, (left, right), strict=True)
        ]
        assert ends[0] == ends[1]
