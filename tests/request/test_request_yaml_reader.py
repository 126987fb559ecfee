"""YAML that is made to cost; what ordinary files say is tested where they are read."""

from __future__ import annotations

from datetime import date

import pytest

from reprobuild.request.yaml_reader import MOST_LINE, MOST_TEXT, load_yaml

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)

MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 20)
)


WIDE_MERGES = f"a: &a {{{', '.join(f'k{n}: 1' for n in range(1000))}}}\n" + "".join(
    f"b{n}: {{<<: *a}}\n" for n in range(1100)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" * (MOST_TEXT + 1), "more than 8,388,608 characters"),
        ("[" * 5000, "nested too deeply"),
        ("a: " + "1:" * MOST_LINE, "line 1 has more than 65,536 characters"),
        (LAUGHS, "more than 1,000,000 values, with its aliases written out"),
        (WIDE_MERGES, "more than 1,000,000 values, with its merge keys written out"),
        ("a: &a [*a]", "nested too deeply"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
        ("[a]: b", "unhashable|acceptable"),
        ("a: 2024-13-45", "month must be in"),
        ("!!python/object/apply:os.system [true]", "could not determine a constructor"),
        ("a: 'b", "found unexpected end of stream"),
        ("a: 1\nb: {c: 1, d: 2, c: 3}", "line 2: the key 'c' is there twice"),
        ("a: \x00", "special characters are not allowed"),
    ],
    ids=lambda each: each[:12],
)
def test_what_is_out_of_bounds(text: str, reason: str) -> None:
    # The reason is the bound that was met; without it some of these take minutes, and say another.
    with pytest.raises(ValueError, match=reason):
        load_yaml(text)


def test_dates_and_numbers_of_base_60_can_be_left_as_text() -> None:
    """YAML 1.2 and Go read none."""
    text = "[1:30, 1:30.5, 1_000, 0x10, 1.5, -7, '1:30', 2024-01-02]"
    assert load_yaml(text) == [90, 90.5, 1000, 16, 1.5, -7, "1:30", date(2024, 1, 2)]
    assert load_yaml(text, plain=True) == ["1:30", "1:30.5", 1000, 16, 1.5, -7, "1:30", "2024-01-02"]


def test_merges_of_merges_are_refused_or_cost_nothing() -> None:
    """PyYAML writes them out, nine times nine times …; a release that does not has one value for each."""
    try:
        found = load_yaml(MERGES)
    except ValueError as refused:
        found = str(refused)
    assert found in (
        "it has more than 1,000,000 values, with its merge keys written out",
        {f"a{n}": {"x": 1} for n in range(20)},
    )


def test_the_earlier_of_merged_mappings_counts() -> None:
    """https://yaml.org/type/merge.html; PyYAML 6.0.4 takes the later."""
    assert load_yaml("one: &one {key: 1}\ntwo: &two {key: 2}\nboth: {<<: [*one, *two]}")["both"] == {"key": 1}


def test_a_key_beside_a_merged_one_is_not_there_twice() -> None:
    """Also where the mapping is used again."""
    assert load_yaml("base: &b {x: 1}\na: &a\n  <<: *b\n  x: 2\nagain: *a\nmore: {<<: *a, x: 3}") == {
        "base": {"x": 1}, "a": {"x": 2}, "again": {"x": 2}, "more": {"x": 3}
    }  # fmt: skip


def test_aliases_within_reason() -> None:
    assert load_yaml("a: &a [1, x]\nb: *a\nc: {<<: {d: 1:30}}") == {
        "a": [1, "x"],
        "b": [1, "x"],
        "c": {"d": 90},
    }
