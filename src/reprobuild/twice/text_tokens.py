"""Reads a line of a run's text in pieces, each with what that run's evidence says of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isinf
from struct import pack, unpack

from .derived_items import Item
from .evidence import EXACT, FEW, MAYBE, SHORTEST, Evidence
from .timestamps import MOMENT, in_run

_LASTING = re.compile(r"\d+:\d\d(?::\d\d)?(?:\.\d+)?")
_SINGLE = range(7, 10)
"""Digits of a number that was rounded to single precision, as in TensorBoard's files."""
_LEAST_SINGLE, _LARGEST_SINGLE = 1e-30, 1e30
LASTING = r"(?<![\d.:])(?:\d+ days?, )?\d+:\d\d(?::\d\d)?(?:\.\d+)?(?![\d:])"
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_LEAST_OF_TIME = 4
"""Digits of a number that may be the last ones of a time in seconds."""
_LEAST_AS_FLOAT = 6
"""Characters of a process number that is written as 1234.0."""
_TEMPORARY = 8
"""Characters that tempfile draws."""
_NUMBERS = (r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)", r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
"""With commas between thousands, and without."""
_REST = r"|(?P<word>[^\W\d_]+|_)|(?P<space>\s+)|(?P<other>.)"
_NAME = re.compile(
    rf"(?<![0-9A-Za-z])(?:{UUID}(?![0-9A-Za-z])|\w*?_(?={UUID})"
    r"|(?:[0-9a-f]{2}/[0-9a-f]{6,}|\w{6,})(?![0-9A-Za-z]))"
)
"""A UUID, or what is before one; a slash behind two digits: so are folders called after a hash."""
_BEFORE = rf"(?P<moment>{MOMENT})|(?P<address>\b0x[0-9a-fA-F]{{6,16}}\b)|(?P<name>{_NAME.pattern})|"
_PATTERNS = {
    in_table: tuple(
        re.compile(
            rf"{begin}(?P<lasting>{LASTING})|(?P<number>{'|'.join(_NUMBERS[in_table:])}){_REST}", re.DOTALL
        )
        for begin in (_BEFORE, "")
    )
    for in_table in (False, True)
}
"""With dates, addresses and names, and without; in a table with commas these are no part of a number."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a line."""

    kind: str
    text: str
    key: str
    """What it is by itself, as evidence of its run says; empty: nothing is known."""
    written: tuple[Item, ...] = ()
    """The measured numbers that a log wrote at this very place of a message."""


def general(text: str, evidence: Evidence, *, numbers: bool = True) -> str:
    """Return a text with what differs in each run by its nature replaced by what it is.

    ``numbers``: also plain numbers that were measured, or that are equal to one by chance.
    """
    found = []
    for token in tokens(text, evidence):
        measured = (numbers and token.kind == "number") and (
            _written(token.text, evidence)
            or (digits(token.text) >= EXACT and measured_items(token.text, evidence))
        )
        # A small number may be a process's and a result.
        plain = token.kind == "process number" and len(token.text) < 4
        found.append(
            "<measured>" if measured else f"<{token.key}>" if token.key and not plain else token.text
        )
    return "".join(found)


def without_times(line: str, evidence: Evidence) -> str:
    """Return a line with spaces in place of each time of the run, and of brackets around it."""
    read = tokens(line, evidence)
    for at, token in enumerate(read):
        if token.key == "time of day":
            around = [each for each in (at - 1, at + 1) if 0 <= each < len(read)]
            both = len(around) == 2 and [read[each].text for each in around] == ["[", "]"]
            for each in (at, *(around if both else ())):
                read[each] = Token("space", " " * len(read[each].text), "")
    return "".join(token.text for token in read)


def tokens(line: str, evidence: Evidence, *, in_table: bool = False) -> list[Token]:
    """Return a line in pieces, each with what is known of it by this run's evidence alone.

    ``in_table``: it is a row of a table with commas.
    """
    found: list[Token] = []
    whole_pattern, plain_pattern = _PATTERNS[in_table]
    at = 0
    spans = evidence.written_in(line)
    phrases, drawn = evidence.phrases, evidence.drawn_names
    while match := whole_pattern.match(line, at):
        if phrases and not line[max(at - 1, 0) : at].isalnum() and (phrase := phrases.match(line, at)):
            own = f"uuid {evidence.short_uuids.index(phrase[0])}" if phrase[0] in evidence.short_uuids else ""
            key = f"drawn name {drawn.index(phrase[0])}" if phrase[0] in drawn else own or "pool worker 0"
            found.append(Token("drawn name", phrase[0], key))
            at = phrase.end()
            continue
        kind, text = match.lastgroup or "", match[0]
        if kind in ("moment", "address", "name"):
            known = _known(kind, text, evidence)
            if known is None and kind == "moment" and (name := _NAME.match(line, at)):
                # One that begins like a time in seconds, as 1531568797d246b9976afda8385ac64b does.
                known = _known("name", name[0], evidence)
                match, text = (name, name[0]) if known is not None else (match, text)
            if known is None:
                match = plain_pattern.match(line, at)
                if match is None:
                    break
                kind, text = match.lastgroup or "", match[0]
            else:
                begin = text.find(known.text)
                found += [*tokens(text[:begin], evidence), known]
                at = match.start() + begin + len(known.text)
                continue
        key = ""
        if kind == "number":
            kind, key, text = _number(text, line[at:], evidence)
        end = at + len(text)
        written = tuple(item for first, last, item in spans if first <= at and end <= last)
        found.append(Token(kind, text, key, written))
        at = end
    return found


def _number(text: str, line: str, evidence: Evidence) -> tuple[str, str, str]:
    """Return kind and key of a number that a line begins with, and how much of it is one."""
    dot = text.find(".")
    if dot > 0 and line[len(text) : len(text) + 1].isidentifier():
        # Of psi.1234.91kj6ka5 the process's number, and not 1234.91.
        name = _NAME.match(line, dot + 1)
        text = text[:dot] if name is not None and _known("name", name[0], evidence) is not None else text
    # pandas writes whole numbers so in a column where some are missing.
    as_whole = text.removesuffix(".0") if len(text) >= _LEAST_AS_FLOAT else text
    whole = evidence.parts.get(as_whole)
    number = float(text.replace(",", ""))
    if whole is not None:
        return whole[0].removesuffix("s"), f"{whole[0]} {whole[1]}", text
    if text in evidence.millionths:
        return "time of day", "time of day", text
    if text.isdecimal() and (last := _last_digits(text, evidence)):
        return "number", f"last {last} digits of the time", text
    if len(text) >= 10 and any(start <= number < end for start, end in evidence.memory):
        return "address", "address", text
    return "number", "", text


def _written(text: str, evidence: Evidence) -> bool:
    """Return whether a number was written by a place of so few that it is not one of them by chance."""
    few = max(FEW, 10 ** min(digits(text) - 2, EXACT))
    return len(text) > 2 and any(item.at + item.left < few for item in evidence.texts.get(text, ()))


def _last_digits(text: str, evidence: Evidence) -> int:
    """Say of how many last digits of a second of the run a number is, as in a name; 0: of no second.

    It is one by chance in a thousandth of cases at most.
    """
    began, lasted = int(evidence.began), int(evidence.ended) - int(evidence.began) + 1
    for many in range(max(len(text), _LEAST_OF_TIME), 9) if len(text) >= _LEAST_OF_TIME else ():
        if began and 1000 * lasted <= 10**many and (int(text) - began) % 10**many <= lasted:
            return many
    return 0


def _known(kind: str, text: str, evidence: Evidence) -> Token | None:
    if kind == "moment":
        if in_run(text, evidence.began, evidence.ended, evidence.zones):
            # By itself it may be a duration, too.
            return Token("lasting" if _LASTING.fullmatch(text) else "time of day", text, "time of day")
    elif kind == "address":
        if any(start <= int(text, 16) < end for start, end in evidence.memory):
            return Token("address", text, "address")
    else:
        # A file may be called after several, as 0001_<uuid>_<time>.json.
        head = text.partition("_")[0]
        heads = (head, head[-_TEMPORARY:]) if len(head) >= SHORTEST else ()
        for part in (text, text[-_TEMPORARY:], *heads):
            whole = evidence.parts.get(part.replace("-", "").replace("/", ""))
            if whole is not None:
                return Token("drawn name", part, f"{whole[0].removesuffix('s')} {whole[1]}")
        if text in evidence.drawn:
            return Token("drawn name", text, f"drawn {evidence.drawn.index(text)}")
    return None


def digits(text: str) -> int:
    """Return how many digits a number has, without zeros before them."""
    mantissa = re.split("[eE]", text)[0]
    return len(re.sub(r"\D", "", mantissa).lstrip("0"))


def printed_range(text: str) -> tuple[float, float]:
    """Return the interval of numbers that print like this; infinite for one that no float holds."""
    mantissa, _, exponent = text.replace(",", "").lower().partition("e")
    value = float(text.replace(",", ""))
    if isinf(value):  # so does a hash such as 8e681493462 read
        return value, value
    half = 0.5 * 10.0 ** min(float(exponent or 0) - len(mantissa.partition(".")[2]), 308.0)
    if digits(text) in _SINGLE:
        half += value * 2.0**-24
    elif digits(text) > EXACT and _is_single(value):
        half = max(half, value * 2.0**-22)  # torch added numbers of this precision
    return value - half * 1.000001, value + half * 1.000001


def _is_single(value: float) -> bool:
    """Return whether a number has the digits of single precision alone, which one of twice that has not."""
    if not _LEAST_SINGLE < abs(value) < _LARGEST_SINGLE:
        return False
    single: float = unpack("<f", pack("<f", value))[0]
    return single == value


def measured_items(text: str, evidence: Evidence) -> list[Item]:
    """Return the measured numbers that print like this."""
    return evidence.between(*printed_range(text))


def seconds_of(text: str) -> float:
    """Return what a duration such as ``1 day, 2:03:04.5`` or ``02:03`` is in seconds, or in minutes."""
    days, _, clock = text.rpartition(" ")
    value = 0.0
    for part in clock.split(":"):
        value = 60 * value + float(part)
    return value + 86400 * float(days.split()[0]) if days else value


def is_written(one: Item, other: Item, *, of_measure: bool) -> bool:
    """Return whether two runs wrote a measured number at the same place, at the same turn.

    A log keeps which number of a message was measured, and which worker writes it when may vary.
    """
    sites = [(each.site[0].removeprefix(MAYBE), *each.site[1:]) for each in (one, other)]
    maybe = all(each.site[0].startswith(MAYBE) for each in (one, other))
    same_turn = one.at == other.at or one.left == other.left
    alike = sites[0] == sites[1] and (same_turn or sites[0][0].startswith("message"))
    # What is short, and printed alone, may be a result that is written like a time before it.
    return alike and not maybe and (of_measure or not sites[0][0].startswith("printed"))
