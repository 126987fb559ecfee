"""A number in the text of two runs that differs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .derived_items import SiteKey
from .evidence import Evidence
from .line_forms import NUMBER, said
from .text_tokens import Token, digits, measured_items

Turn = tuple[int, int]
"""A process, and at which turn there one of its places gave a number."""
_TELLS_ITS_TURN = 6
"""Digits from which a number says at which turn its place gave it."""
_AGAIN = 4
"""Digits from which one measured number is recognized at several places of a text."""


@dataclass(frozen=True)
class DifferingNumber:
    """A number of a line in which two runs differ."""

    pair: tuple[Token, Token]
    lines: tuple[str, str]
    redrawn: bool
    """Whether it stands in a line that is drawn again and again."""
    of_measure: bool
    """Whether the words beside it speak of a measure."""

    @cached_property
    def least(self) -> int:
        """The digits that it has at least."""
        return min(digits(token.text) for token in self.pair)

    @property
    def again(self) -> bool:
        """Whether it has so many digits that one measured number explains it at several places."""
        return self.redrawn or self.least >= _AGAIN - self.of_measure

    @property
    def doubtful(self) -> bool:
        """Whether it may have the digits of a measured number by chance."""
        lasting = any(token.kind == "lasting" for token in self.pair)
        return not (self.of_measure or self.redrawn) and (self.least < _AGAIN or lasting)

    @cached_property
    def told(self) -> tuple[str, ...]:
        """Both numbers, each with the words before it."""
        words = (said(line, token) for line, token in zip(self.lines, self.pair, strict=True))
        return (self.pair[0].text, self.pair[1].text, *words)

    @cached_property
    def places(self) -> list[int]:
        """Which of its lines' numbers it may be."""
        texts = zip(*map(NUMBER.findall, self.lines), strict=False)
        return [at for at, each in enumerate(texts) if each == tuple(token.text for token in self.pair)]


def sites_of(pair: Sequence[Token], sides: Sequence[Evidence]) -> frozenset[SiteKey]:
    """Return the places that gave a number in both runs."""
    if any(token.kind != "number" for token in pair):
        return frozenset()
    one, other = (measured_items(token.text, side) for token, side in zip(pair, sides, strict=True))
    return frozenset({item.site for item in one} & {item.site for item in other})


def turns_of_row(pairs: Sequence[tuple[Token, Token]], sides: Sequence[Evidence]) -> dict[Turn, Turn]:
    """Return the turn of a line in one run, and that of the same line in the other, if they differ.

    As those of a row in a table that is sorted by a time. Only a long number of a single place tells.
    """
    found: dict[Turn, Turn] = {}
    for pair in pairs:
        if pair[0].text != pair[1].text and all(
            token.kind == "number" and digits(token.text) >= _TELLS_ITS_TURN for token in pair
        ):
            given = [measured_items(token.text, side) for token, side in zip(pair, sides, strict=True)]
            turns = [{item.turn for item in items if item.site[0] == "value"} for items in given]
            sites = {item.site for items in given for item in items if item.site[0] == "value"}
            if len(sites) == 1 and all(len(each) == 1 for each in turns):
                (one,), (other,) = turns
                found |= {one: other} if one != other else {}
    return found
