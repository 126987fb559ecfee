from __future__ import annotations

from reprobuild.twice.line_records import LineRecord, LineStream
from reprobuild.twice.paired_lines import paired
from reprobuild.twice.records import ProgramLine


def stream(text: str) -> list[LineStream]:
    """Return the statements of a process: a thread's letter and a line, each."""
    records = []
    for at, word in enumerate(text.split()):
        thread, line = word[0], int(word[1:])
        place = ProgramLine("train.py", line, "main", "")
        records.append(LineRecord("line", at + 1, 0, place, line, thread, at, {}, {}, {}, {}, {}))
    return [LineStream(("", "", "MainProcess", "train.py"), tuple(records))]


def found(one: str, other: str) -> list[tuple[str, int, bool]]:
    pairs = paired(stream(one), stream(other))
    return [(a.thread, a.place.line, b is not None) for a, b, _ in pairs]


def test_each_thread_is_compared_by_itself() -> None:
    assert found("m1 t7 m2 t8", "t7 t8 m1 m2") == [
        *(("m", 1, True), ("m", 2, True)),
        *(("t", 7, True), ("t", 8, True)),
    ]


def test_where_the_runs_part_the_last_common_statement_is_told_and_they_meet_again() -> None:
    assert found("m1 m2 m3 m4 m5", "m1 m9 m3 m4 m5") == [
        ("m", 1, True),
        ("m", 1, False),
        *(("m", line, True) for line in (3, 4, 5)),
    ]
    assert found("m1 m2", "m1 m3") == [("m", 1, True), ("m", 1, False)]
