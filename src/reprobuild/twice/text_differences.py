"""Compare the texts of two runs: what comes from a clock, a drawn name or an address is a difference of text;
everything else that differs is a result. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log

from . import chance
from .derived_items import Item, SiteKey
from .differing_number import DifferingNumber, Turn, sites_of, turns_of_row
from .evidence import EXACT, FEW, Evidence
from .faster_clocks import BY_DIGITS, GROWN, FasterRun, GrownTimes
from .line_forms import (
    COUNTED,
    FILLING,
    NUMBER,
    by_form,
    column_of,
    columns_of_measure,
    commas_of,
    goes_with,
    is_layout,
    is_of_measure,
    is_told_by_time,
    outline,
    regions_apart,
    template,
    zeros_behind_signs,
)
from .line_order import keep_their_order, matched, rows_in_one_order, turns
from .progress_bars import common, redrawn
from .text_tokens import (
    Token,
    digits,
    is_written,
    measured_items,
    printed_range,
    seconds_of,
    tokens,
    without_times,
)
from .timed_lines import OF_LIBRARY, TIMED, without_libraries_lines, without_timed


@dataclass(frozen=True, slots=True)
class TextDifference:
    """A difference between two runs with a known origin."""

    where: str
    values: tuple[str, str]
    kind: str


_Key = tuple[SiteKey, int, int]
"""A place, its turn, and the process."""
_Turns = Mapping[tuple[object, ...], Sequence[Item]]


class Texts:
    """Compares the texts of two runs, each with its evidence."""

    def __init__(self, one: Evidence, other: Evidence, *, faster: Sequence[FasterRun] = ()) -> None:
        self.sides = (one, other)
        self._faster = faster
        self._used: dict[_Key, DifferingNumber] = {}
        self._used_before: set[_Key] = set()
        """In texts that were compared before: the same line may be on a stream and in a file."""
        self._moved: dict[Turn, Turn] = {}
        """Of the lines compared now, where these stand at different turns of their loop."""
        self._used_in_line: set[_Key] = set()
        """A line may have one duration in several units."""
        self._told: set[tuple[str, ...]] = set()
        self._told_before: set[tuple[str, ...]] = set()
        self._slots: tuple[dict[str, list[str]], ...] = ()
        self._columns: dict[tuple[SiteKey, str, int], int] = {}
        self._commas = 0
        """Of each row of a table, where the text is one."""
        self._measured_columns: frozenset[int] = frozenset()
        """Of a table with commas, by what its first line calls them."""
        self._found: dict[tuple[int, int, str], list[Item]] = {}
        self._by_turn: dict[tuple[object, ...], _Turns] = {}
        self._grown = GrownTimes((), (), "")
        self._in_any_order = False
        """Whether the lines are put side by side by what they say."""
        self._counts: frozenset[tuple[str, int]] = frozenset()
        """Where they are counted then, as in [3/24]."""
        self.apart: tuple[str, str] | None = None
        """The lines of which one is a result, where they are not on the same line."""

    def compare(
        self, one: Sequence[str], other: Sequence[str], where: str, *, many: bool
    ) -> tuple[int | None, list[TextDifference]]:
        """Return the first line, from 0, with a differing result, and the differences that do not count.

        With ``many`` processes, which print when they come to it, the order of lines does not count.
        """
        if list(one) == list(other):
            return None, []
        given = one, other
        one, other, of_libraries = without_libraries_lines(one, other)
        one, other, timed = without_timed((one, self.sides[0]), (other, self.sides[1]), self._faster, where)
        kinds = ((of_libraries, OF_LIBRARY), (timed, TIMED))
        found = [TextDifference(where, (a[:160], b[:160]), kind) for each, kind in kinds for a, b in each]
        if many and Counter(one) == Counter(other):
            return None, [*found, _other_order(one, other, where, "order of the processes")]
        self._used_before |= self._used.keys()
        self._told_before |= self._told
        self._slots = tuple(by_form(lines) for lines in (one, other))
        self._grown = GrownTimes(self._faster, one, where, other, self.sides)
        head = one[0] if one[:1] == other[:1] else ""
        self._measured_columns, self._commas = columns_of_measure(head), commas_of(head)
        self._in_any_order = many and len(one) == len(other)
        number, same = self._first(one, other, where)
        live = where.endswith((*_STREAMS, ".log")) and all(side.works_beside for side in self.sides)
        may_differ = live and not many and len(one) == len(other)
        if number is not None and may_differ and keep_their_order(one, other, self.sides):
            self._in_any_order = True
            in_other_order = self._first(one, other, where)
            if in_other_order[0] is None:
                order = _other_order(one, other, where, "order of lines that have a time")
                return None, [*found, *in_other_order[1], order]
            self._in_any_order = False
            self._first(one, other, where)
        if (
            number is not None
            and not many
            and (ordered := rows_in_one_order(one, other)) not in (None, other)
        ):
            in_one_order = self._first(one, ordered, where)
            if in_one_order[0] is None:
                order = _other_order(one, other, where, "order of rows that are sorted by a time")
                return None, [*found, *in_one_order[1], order]
            self._first(one, other, where)
        if self.apart == tuple("".join(lines[number : number + 1]) for lines in given if number is not None):
            self.apart = None
        return number, [*found, *same]

    def _first(
        self, one: Sequence[str], other: Sequence[str], where: str
    ) -> tuple[int | None, list[TextDifference]]:
        """Return the first of the lines with a result that differs, as `compare` does."""
        for each in (self._used, self._told, self._columns, self._found, self._by_turn):
            each.clear()
        self.apart = None
        found: list[TextDifference] = []
        in_order = list(zip(one, other, strict=False))
        pairs = matched(one, other, self.sides) if self._in_any_order else in_order
        self._counts = turns(one, other) if self._in_any_order else frozenset()
        for number, (a, b) in enumerate(pairs):
            if a != b:
                explained = self._line(a, b, place := f"line {number + 1} of {where}")
                if explained is None and not self._in_any_order:
                    for is_known, kind in _LINES:
                        if is_known(one, other, number):
                            explained = [TextDifference(place, (a[:160], b[:160]), kind)]
                            break
                if explained is None:
                    self.apart = a, b
                    return number, found
                found += explained
        return (None if len(one) == len(other) else min(len(one), len(other))), found

    def _line(self, one: str, other: str, where: str) -> list[TextDifference] | None:
        """Return the differences of two lines, each explained; None: one is a result."""
        if "\r" not in one.rstrip("\r") or "\r" not in other.rstrip("\r"):
            return self._pair((one, other), where, redrawn=False) or self._timed(one, other, where)
        a, b = redrawn(one), redrawn(other)
        if len(a.others) != len(b.others):
            return None
        found: list[TextDifference] = []
        before_text = [(a.before_text, b.before_text)] if a.progress == b.progress else []
        for pair in ((a.last, b.last), *before_text, *zip(a.others, b.others, strict=True)):
            if pair[0].split() != pair[1].split():
                explained = self._pair(pair, where, redrawn=True)
                if explained is None:
                    return None
                found += explained
        drawn_over = next((pair for pair in common(a, b) if pair[0].split() != pair[1].split()), None)
        if drawn_over is not None:
            found.append(TextDifference(where, (drawn_over[0][:160], drawn_over[1][:160]), "drawn over"))
        times = (f"{one.count(_CR)}", f"{other.count(_CR)}")
        return found or [TextDifference(where, times, "times drawn again")]

    def _timed(self, one: str, other: str, where: str) -> list[TextDifference] | None:
        """Return the differences of two lines of which one leaves out its time, that of the line before."""
        a, b = map(without_times, (one, other), self.sides)
        if len(one) != len(other) or (a == one) == (b == other):
            return None
        more = [] if a == b else self._pair((a, b), where, redrawn=False)
        found = TextDifference(where, (one[:160], other[:160]), "time of day")
        return None if more is None else [found, *more]

    def _pair(self, lines: tuple[str, str], where: str, *, redrawn: bool) -> list[TextDifference] | None:
        """Return the differences of two lines without carriage returns in them."""
        in_table = self._commas > 0 and {line.count(",") for line in lines} == {self._commas}
        in_table = in_table and not any(", " in line for line in lines)  # of words, with commas in numbers
        both = [tokens(line, side, in_table=in_table) for line, side in zip(lines, self.sides, strict=True)]
        self._used_in_line.clear()
        found: list[TextDifference] = []
        measured: tuple[set[int], set[int]] = (set(), set())
        loose: list[tuple[int, int]] = []
        unknown: list[tuple[str, str]] = []
        known: set[tuple[str, str]] = set()
        regions = regions_apart(*both)
        alone = [(both[0][a.start], both[1][b.start]) for a, b in regions if len(a) == len(b) == 1]
        self._moved = turns_of_row(alone, self.sides)
        for region in regions:
            numbers, rest = (
                [
                    [at for at in each if (t[at].kind in COUNTED or bool(t[at].key)) == is_number]
                    for t, each in zip(both, region, strict=True)
                ]
                for is_number in (True, False)
            )
            if len(numbers[0]) != len(numbers[1]):
                return None
            zeros = zeros_behind_signs(both, region)
            for i, j in (*zip(*numbers, strict=True), *zeros):
                x, y = both[0][i], both[1][j]
                if x.text != y.text or zeros:
                    of_measure = is_of_measure(both[0], i)
                    if self._measured_columns and not of_measure:
                        of_measure = column_of(both[0], i) in self._measured_columns
                    kind = self._explained(x, y, lines, redrawn=redrawn, of_measure=of_measure)
                    if kind is None:
                        unknown.append((x.text, y.text))
                    shown = lines if zeros else (x.text, y.text)
                    found.append(TextDifference(where, (shown[0][:160], shown[1][:160]), kind or GROWN))
                    measured[0].add(i)
                    measured[1].add(j)
                    known |= {(x.text, y.text)} if kind in _MEASURED else set()
            if len({tuple(t[at].text for at in each) for t, each in zip(both, rest, strict=True)}) > 1:
                loose += [(side, at) for side, each in enumerate(rest) for at in each]
        if not all(self._grown.is_multiple(pair, lines, known) for pair in unknown):
            return None
        filling = [(side, at) for side, at in loose if both[side][at].text == FILLING]
        if len(lines[0]) == len(lines[1]) and len({side for side, _ in filling}) == 1:
            loose = [each for each in loose if each not in filling]
        fits = all(goes_with(both[side], at, measured[side], redrawn=redrawn) for side, at in loose)
        return found if found and fits else None

    def _explained(
        self, x: Token, y: Token, lines: Sequence[str], *, redrawn: bool, of_measure: bool
    ) -> str | None:
        if x.key and (x.key == y.key or (self._in_any_order and x.kind == y.kind and x.kind in _OF_TURN)):
            return x.kind if x.kind not in COUNTED else x.key
        if any(token.kind not in (*COUNTED, "process number", "port") for token in (x, y)):
            return None  # a measured number may by chance be that of a process, too
        if any(is_written(a, b, of_measure=of_measure) for a in x.written for b in y.written):
            return "duration or speed"
        number = DifferingNumber((x, y), (lines[0], lines[1]), redrawn, of_measure)
        if self._counts and any((outline(lines[0]), at) in self._counts for at in number.places):
            return "its turn"
        found = self._measured(number)
        if found in (None, BY_DIGITS):
            sites = sites_of(number.pair, self.sides) if found else frozenset[SiteKey]()
            grown = self._grown.are_times((x.text, y.text), number.lines, of_measure=of_measure, sites=sites)
            return GROWN if grown else found if grown is None else None
        return found

    def _measured(self, number: DifferingNumber) -> str | None:
        """Say what a number is that has the digits of a measured one; None: it has not."""
        for key in self._candidates(number, free=True):
            return self._use(key, number)
        # One that explains another number, which a second one explains as well.
        for key in islice(self._candidates(number), _MOST_OTHERS):
            owner = self._used[key]
            for other in self._candidates(owner, free=True):
                self._use(other, owner)
                return self._use(key, number)
        return None

    def _use(self, key: _Key, number: DifferingNumber) -> str:
        self._used[key] = number
        self._used_in_line.add(key)
        self._told.add(number.told)
        sure = not number.doubtful or key[0][1].endswith(_LOGGING)
        return "duration or speed" if sure else BY_DIGITS

    def _candidates(self, number: DifferingNumber, *, free: bool = False) -> Iterator[_Key]:
        """Yield what of a place's both numbers may be, each in its run at the same turn."""
        x, y = number.pair
        if "lasting" in (x.kind, y.kind):
            spans = [
                seconds_of(t.text) if t.kind == "lasting" else float(t.text.replace(",", "")) for t in (x, y)
            ]
            decimals = [len(t.text.partition(".")[2]) for t in (x, y)]
            items = [
                side.between(span - 0.5 * 10.0**-many, span + 10.0**-many)
                for side, span, many in zip(self.sides, spans, decimals, strict=True)
            ]
            yield from self._common(items, number, -1, free=free)
            return
        for choice, (_, *shortest) in enumerate(_CHOICES):
            if number.least >= shortest[number.of_measure]:
                items = [self._items(choice, side, token.text) for side, token in enumerate((x, y))]
                yield from self._common(items, number, choice, free=free)

    def _common(
        self, items: Sequence[Sequence[Item]], number: DifferingNumber, choice: int, *, free: bool
    ) -> Iterator[_Key]:
        # Which of its times a short number is, is not known otherwise.
        anywhere = number.redrawn or number.least >= EXACT
        elsewhere = number.again or number.of_measure or number.told in self._told_before
        twins = self._turns(items[1], (anywhere, choice, number.pair[1].text))
        # Known only of numbers that could be many others.
        is_short = choice >= 0 and number.least < EXACT and all(items)
        likely = self._by_chance([token.text for token in number.pair], choice) if is_short else 0.0
        for item in items[0]:
            key = (item.site, item.at, item.process)
            in_line = number.of_measure and key in self._used_in_line
            if free and key in self._used and not (number.again or in_line or self._is_same(key, number)):
                continue
            turns = (("any",),) if anywhere else (("at", item.at), ("left", item.left))
            found = [twin for turn in turns for twin in twins.get((item.site, *turn), ())]
            if not anywhere and (moved := self._moved.get(item.turn)):
                found += [twin for twin in twins.get((item.site, "at", moved[1]), ()) if twin.turn == moved]
            if any(self._sure(item, twin, number, likely) for twin in found) and (
                key not in self._used_before or elsewhere or self._each(item.site, number)
            ):
                yield key

    def _is_same(self, key: _Key, number: DifferingNumber) -> bool:
        """Return whether a number of some digits is the one that a place explained before, written again."""
        texts = [token.text for token in number.pair]
        long = number.least >= _SHORT - 1 and sum(map(digits, texts)) >= 2 * _SHORT - 1
        return long and [token.text for token in self._used[key].pair] == texts

    def _items(self, choice: int, side: int, text: str) -> list[Item]:
        key = (choice, side, text)
        if key not in self._found:
            self._found[key] = _CHOICES[choice][0](self.sides[side], text)
        return self._found[key]

    def _turns(self, items: Sequence[Item], key: tuple[object, ...]) -> _Turns:
        """Return items by their site and their turn, from the first on or up to the last."""
        if key not in self._by_turn:
            found: dict[tuple[object, ...], list[Item]] = defaultdict(list)
            for item in items:
                for turn in (("any",),) if key[0] else (("at", item.at), ("left", item.left)):
                    found[item.site, *turn].append(item)
            self._by_turn[key] = found
        return self._by_turn[key]

    def _by_chance(self, texts: Sequence[str], choice: int) -> float:
        found = [[self._items(choice, side, text) for side in (0, 1)] for text in texts]
        written = {_COMPUTED: None, _WRITTEN: True}.get(choice, False)
        many = (side.alike_in_size(texts, written=written) for side in self.sides)
        return chance.of_pair(texts, found, max(1, *many))

    def _sure(self, item: Item, twin: Item, number: DifferingNumber, likely: float) -> bool:
        """Return whether it is more than chance that a number is one of those that a place gave."""
        least, of_measure = number.least, number.of_measure
        if number.pair[0].kind == "lasting" or least >= EXACT:
            return True
        if item.is_rarer:
            return least >= _SHORT and likely <= chance.OF_PAIR[False]
        turns = max(item.at + item.left, twin.at + twin.left) + 1
        scattered = (of_measure and turns <= FEW) or likely <= chance.OF_PAIR[of_measure]
        if item.site[0] == "text":
            few = turns <= max(_MANY, 10 ** (least - 2))
            return (few and scattered) or self._each(item.site, number)
        # One of one or two digits is near a few by chance, unless the words beside it speak of a measure.
        short = least < _SHORT
        few = turns <= FEW * (8 ** max(least - 2, 0) if of_measure else 1)
        if few and scattered and (of_measure or not short):
            return True
        return self._each(item.site, number, strong=short and not of_measure)

    def _each(self, site: SiteKey, number: DifferingNumber, *, strong: bool = False) -> bool:
        """Return whether in each line of that form the number at that place is one of a site's, in order.

        ``strong``: and hardly so by chance.
        """
        for shape in (template, outline):
            form, other = map(shape, number.lines)
            for at in number.places if form == other else ():
                if (site, form, at) not in self._columns:
                    self._columns[site, form, at] = max(
                        self._is_column(site, form, at, by) for by in ("at", "left")
                    )
                if self._columns[site, form, at] > strong:
                    return True
        return False

    def _is_column(self, site: SiteKey, form: str, at: int, by: str) -> int:
        """Return how surely the numbers at a place of all lines of a form are a site's, turn by turn."""
        alike = [slots.get(form, []) for slots in self._slots]
        if len(alike[0]) != len(alike[1]) or len(alike[0]) < _ALIKE:
            return 0
        sign = 1 if by == "at" else -1
        turns, known, joint, likely = 1, dict[tuple[str, str], list[int]](), list[list[int]](), 0.0
        some = [*zip(*alike, strict=True)][:_MOST_ALIKE]
        for lines in some:
            texts = (NUMBER.findall(lines[0])[at], NUMBER.findall(lines[1])[at])
            if texts not in known:
                given = [
                    self._of_site(site, text, side) for text, side in zip(texts, self.sides, strict=True)
                ]
                turns = max((turns, *(item.at + item.left + 1 for each in given for item in each)))
                sets = [{sign * getattr(item, by) for item in each} for each in given]
                known[texts] = sorted(sets[0] & sets[1])
                likely += log(self._by_chance(texts, _WRITTEN if site[0] == "text" else _COMPUTED))
            if not known[texts]:
                return 0
            joint.append(known[texts])
        strong = likely < chance.HARDLY and chance.increase(joint)
        return 2 if strong else int(chance.are_a_column(joint, turns, likely))

    @staticmethod
    def _of_site(site: SiteKey, text: str, side: Evidence) -> list[Item]:
        items = side.texts.get(text, []) if site[0] == "text" else measured_items(text, side)
        return [item for item in items if item.site == site]


_CR = "\r"
_MEASURED = ("duration or speed", GROWN)
_OF_TURN = ("process number", "port", "clients' port")
"""What belongs to the first, the second and so on, in whichever order these come."""
_STREAMS = ("standard output", "standard error")
_LINES = ((is_layout, "width of a table"), (is_told_by_time, "what the command time measured"))
"""What tells a line of two runs by those around it that it is no result."""
_LOGGING = "/logging/__init__.py"
"""It writes the times of its records itself, and milliseconds of a second, which grow by no clock."""
_SHORT = 3
_ALIKE, _MOST_ALIKE, _MOST_OTHERS = 3, 5000, 100
_CHOICES: tuple[tuple[Callable[[Evidence, str], list[Item]], int, int], ...] = (
    (lambda side, text: side.texts.get(text, []), 0, 0),
    (lambda side, text: measured_items(text, side), 0, 0),
    (lambda side, text: side.cut_off(text), _SHORT, _SHORT),
    (lambda side, text: side.made_of_some(*printed_range(text)), EXACT, _SHORT),
)
"""What a number of so many digits may come from; the second where words speak of a measure."""
_WRITTEN, _COMPUTED = 0, 1
_MANY = 1024
"""Turns of a place up to which a text that it gave is recognized by itself."""


def _other_order(one: Sequence[str], other: Sequence[str], where: str, kind: str) -> TextDifference:
    """Return the first line that stands at another place."""
    at = next(n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    return TextDifference(f"line {at + 1} of {where}", (one[at][:160], other[at][:160]), kind)
