"""Dates and times of day in a text, and whether they are within a run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

_DATE = r"(?:\d{4}-\d\d-\d\d|\d{4}_\d{1,2}_\d{1,2}|\d{4}\.\d\d\.\d\d|\d{4}/\d\d/\d\d)"
_WITHOUT_COLONS = r"\d{4}[-_./]\d\d[-_./]\d\d[T_ /@-]\d{4}(?:\d\d)?(?!\d)"
_FULL = (
    rf"(?!{_WITHOUT_COLONS}){_DATE}"
    r"(?:[T_ /@:+-]\d\d[:.h_-]\d\d(?:[:.m_-]\d\d<fraction>?(?:\+\d\d(?![\d:.]))?)?)?"
    r"(?:Z|[+-]\d\d:?\d\d)?"
)
"""Behind a second and a plus also the number of a checkpoint of it, as SpeechBrain's names have that."""
_SHORT = rf"(?:20\d{{6}}[-_T]?\d{{4}}(?:\d\d)?|{_WITHOUT_COLONS})"
_NAMED = (
    r"[A-Z][a-z]{2}[ _]{0,2}\d{1,2}[ _-]\d\d[:-]\d\d[:-]\d\d<fraction>?(?: ?[AaPp][Mm])?"
    r"(?: (?:UTC|GMT))?(?: \d{4})?"
)
_SLASHED = r"\d{1,2}/\d{1,2}/\d{2,4},? +\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?"
_SERVED = r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?"
"""As web servers log it (Apache's documentation of mod_log_config, ``%t``)."""
_DAY_FIRST = r"\d{1,2}[ -][A-Z][a-z]{2,8}[ -]\d{4},? \d\d:\d\d(?::\d\d)?(?: [+-]\d{4}| GMT| UTC)?"
"""As in mails (RFC 5322, 3.3), which may leave out the seconds."""
_OF_PDF = r"D:20\d{12}(?:Z|[+-]\d\d'\d\d'?)?"
"""A date in a PDF (ISO 32000-1, 7.9.4)."""
_OF_PYTHON = r"datetime\.datetime\(\d{4}(?:, \d{1,2}){5}(?:, \d{1,6})?"
"""As ``repr`` shows it, without what follows, such as its zone."""
_CLOCK = r"(?:\d{1,2}:\d\d(?::\d\d<fraction>?)?(?: ?[AaPp][Mm])?|\d\d-\d\d-\d\d)"
_JULIAN = r"(?:2[45]\d{5}\.\d{5,}|2\.[45]\d{10,}[eE]\+?0?6)"
"""A day number of astronomy with a fraction, as SQLite's clock gives it."""
_EPOCH = r"1\d{9}(?:\.\d+|\d{3}|\d{6}|\d{9})?"
_AS_FLOAT = r"1\.\d{6,}[eE]\+?0?9"
"""Seconds since 1970 as a dump of SQLite writes a number with parts."""
_OF_CENTURY = r"[2-9]\d[01]\d[0-3]\d[0-2]\d[0-5]\d[0-5]\d(?![A-Za-z])"
"""Two digits each of year, month, day, hour, minute and second, as in names of runs."""
_KINDS = (
    _FULL,
    _SHORT,
    _NAMED,
    _SLASHED,
    _JULIAN,
    _CLOCK,
    _EPOCH,
    _SERVED,
    _DAY_FIRST,
    _OF_PDF,
    _OF_PYTHON,
    _OF_CENTURY,
    _AS_FLOAT,
)
_FRACTION = r"(?:\.\d+|,(?:\d{3}|\d{6})(?=[^\d,.\r\n]))"
"""Of a second: with a comma only such as logging has, or the next column of a table would be one."""
_TWICE = r"(?:,(?P<thousandths>\d{3})\.(?P=thousandths)(?!\d))"
"""What logging writes for ``%(asctime)s.%(msecs)03d``."""
MOMENT = rf"(?<![0-9A-Za-z.])(?<!\d:)(?:{'|'.join(_KINDS)})(?!\d|:\d)"
MOMENT = MOMENT.replace("<fraction>", f"(?:{_TWICE}|{_FRACTION})", 1).replace("<fraction>", _FRACTION)
_PATTERNS = tuple(re.compile(kind.replace("<fraction>", r"(?:[.,][\d.]+)")) for kind in _KINDS)
_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)$")
_EPOCH_DAY = 2440587.5
_LONGEST = 3600
"""Seconds of a run up to which a time of day without its date says that it is of the run."""
_AROUND = 2.0
"""Seconds that the program's clock may be away from ours."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def in_run(text: str, began: float, ended: float, zones: Sequence[int]) -> bool:
    """Return whether a text is a date or a time of day between the start and the end of a run."""
    low, high = began - _AROUND, ended + _AROUND
    return any(start < high and start + lasts > low for start, lasts in _read(text, low, high, zones))


def _read(text: str, low: float, high: float, zones: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Yield what a text may mean: seconds since 1970, and how long that lasts."""
    full, short, named, slashed, julian, clock, epoch, *_ = (pattern.fullmatch(text) for pattern in _PATTERNS)
    yield from _of_programs(text, zones)
    numbers = [int(number[:20]) for number in re.findall(r"\d+", text)]  # int() refuses 4,300 digits
    if epoch:
        whole, _, rest = text.partition(".")
        unit = 10 ** (len(whole) - 10)
        yield int(whole) / unit + float(f"0.{rest or 0}"), 1 / unit
    if julian:
        decimals = len(text.partition(".")[2].lower().partition("e")[0]) - (6 if "e" in text.lower() else 0)
        yield (float(text) - _EPOCH_DAY) * 86400, 86400 * 10.0**-decimals
    if full:
        yield from _full(text, numbers, zones)
    if short:
        digits = re.sub(r"\D", "", text)
        ends = (4, 6, 8, 10, 12, 14)[: 3 + (len(digits) - 8) // 2]
        yield from _dated([int(digits[max(0, end - 2) if end > 4 else 0 : end]) for end in ends], zones)
    if named and text[:3].lower() in _MONTHS:
        month = _MONTHS.index(text[:3].lower()) + 1
        given = re.search(r" (\d{4})$", text)
        years = [int(given[1])] if given else [datetime.fromtimestamp(at, UTC).year for at in (high, low)]
        half = re.search(r"[AaPp][Mm]", text[3:])
        for year in years:
            yield from _dated(
                [year, month, numbers[0], *_hours(numbers[1:4], half[0] if half else "")], zones
            )
    if slashed:
        for month, date in ((numbers[0], numbers[1]), (numbers[1], numbers[0])):
            year = numbers[2] + (2000 if numbers[2] < 100 else 0)
            yield from _dated([year, month, date, *_hours(numbers[3:], text)], zones)
    if clock and high - low < _LONGEST:
        for at in (low, high):
            for zone in zones:
                day = datetime.fromtimestamp(at + zone, UTC)
                yield from _dated([day.year, day.month, day.day, *_hours(numbers, text)], [zone])


def _of_programs(text: str, zones: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Yield what a date of a web server, a mail, a PDF, a run's name, SQLite or Python's ``repr`` means."""
    if re.fullmatch(_AS_FLOAT, text):
        yield float(text), 10.0 ** (9 - len(re.split("[.eE]", text)[1]))
    elif re.fullmatch(_OF_CENTURY, text):
        yield from _dated([2000 + int(text[:2]), *(int(text[at : at + 2]) for at in range(2, 12, 2))], zones)
    elif re.fullmatch(_OF_PYTHON, text):
        yield from _dated([int(number) for number in re.findall(r"\d+", text)[:6]], zones)
    elif re.fullmatch(_OF_PDF, text):
        told, zone = f"{text[2:10]} {text[10:16]}", _zones(text.replace("'", ""), 16, zones)
        yield from _dated([int(told[:4]), *(int(told[at : at + 2]) for at in (4, 6, 9, 11, 13))], zone)
    elif re.fullmatch(_DAY_FIRST, text) and (month := _month(text)):
        day, year, *rest = (int(number) for number in re.findall(r"\d+", text)[:5])
        yield from _dated([year, month, day, *rest], _zones(re.sub(" (?:GMT|UTC)$", "Z", text), 18, zones))
    elif re.fullmatch(_SERVED, text) and text[3:6].lower() in _MONTHS:
        day, *rest = (int(number) for number in re.findall(r"\d+", text[:20]))
        month = _MONTHS.index(text[3:6].lower()) + 1
        yield from _dated([rest[0], month, day, *rest[1:]], _zones(text, 20, zones))


def _month(text: str) -> int:
    """Return the number of the month whose name a text has, by its first letters; 0: it has no such name."""
    name = re.sub("[^A-Za-z]", "", text)[:3].lower()
    return _MONTHS.index(name) + 1 if name in _MONTHS else 0


def _full(text: str, numbers: Sequence[int], zones: Sequence[int]) -> Iterator[tuple[float, float]]:
    length = min(len(numbers), 6)
    ahead = _ZONE.search(text, 10)
    if ahead:
        length = min(length, len(re.findall(r"\d+", text[: ahead.start()])))
    yield from _dated(numbers[:length], _zones(text, 10, zones))


def _zones(text: str, at: int, zones: Sequence[int]) -> Sequence[int]:
    """Return the seconds by which a text says that its zone is ahead, from a place on; else those given."""
    ahead = _ZONE.search(text, at)
    if ahead is None:
        return [0] if text.endswith("Z") else zones
    seconds = (int(ahead[2]) * 60 + int(ahead[3])) * 60
    return [seconds if ahead[1] == "+" else -seconds]


def _hours(numbers: Sequence[int], text: str) -> list[int]:
    half = text[-2:].lower()
    hour = numbers[0]
    if half in ("am", "pm"):
        hour = hour % 12 + (12 if half == "pm" else 0)
    return [hour, *numbers[1:3]]


def _dated(numbers: Sequence[int], zones: Sequence[int]) -> Iterator[tuple[float, float]]:
    lasts = {3: 86400.0, 5: 60.0, 6: 1.0}.get(len(numbers))
    if lasts is None:
        return
    try:
        start = datetime(*numbers[:6], tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return
    for zone in zones:
        yield (start - timedelta(seconds=zone)).timestamp(), lasts
