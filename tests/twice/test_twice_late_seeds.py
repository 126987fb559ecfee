"""A seed that is set after what was drawn."""

from __future__ import annotations

import pytest

from reprobuild.twice.external_values import differing
from reprobuild.twice.known_causes import LATE_SEEDS
from reprobuild.twice.late_seeds import late_seeds
from reprobuild.twice.records import Source, Stream
from support.streams import at, stream

SEED = Source("draw", "random.seed", "7", "(7,)", at(9))


def drawn(value: str, name: str = "random.choices", line: int = 3) -> Source:
    return Source("draw", name, value, value, at(line))


def found(*sources: list[Source]) -> list[tuple[str, int]]:
    one, other = (stream(sources=list(each)) for each in sources)
    pairs: list[tuple[Stream, Stream]] = [(one, other)]
    return [(each.name, each.place.line) for each in late_seeds(pairs, differing(pairs))]


def test_it_is_told_where_draws_before_it_differ() -> None:
    assert found([drawn("1"), SEED, drawn("5", line=12)], [drawn("2"), SEED, drawn("5", line=12)]) == [
        (LATE_SEEDS["random"], 9)
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([SEED, drawn("1")], [SEED, drawn("2")]),
        ([drawn("1"), SEED], [drawn("1"), SEED]),
        ([drawn("1")], [drawn("2")]),
        ([drawn("1", "numpy.random.rand"), SEED], [drawn("2", "numpy.random.rand"), SEED]),
        ([drawn("1"), SEED], [drawn("2"), Source("draw", "random.seed", "8", "(8,)", at(9))]),
    ],
    ids=["first", "equal", "none", "of another module", "another value"],
)
def test_it_is_none(one: list[Source], other: list[Source]) -> None:
    assert found(one, other) == []
