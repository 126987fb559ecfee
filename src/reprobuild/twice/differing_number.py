"""A number in the text of two runs that differs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .line_forms import NUMBER, said
from .text_tokens import Token, digits

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
