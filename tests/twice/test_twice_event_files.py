"""TensorBoard's event files: values count, the clock time of a record does not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from reprobuild.twice.derived_items import Item
from reprobuild.twice.event_files import bounded, event_lines
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.first_difference import files_apart
from reprobuild.twice.ignored import Ignored
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.written import WrittenFile, written_files

NAME = "events.out.tfevents.1927627201.host.17.0"


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def event(clock: float, step: int, tag: bytes, value: float) -> bytes:
    scalar = field(1, tag) + b"\x15" + struct.pack("<f", value)
    return b"\x09" + struct.pack("<d", clock) + bytes([0x10, step]) + field(5, field(1, scalar))


def write(path: Path, *events: bytes) -> Path:
    path.write_bytes(b"".join(struct.pack("<QI", len(each), 0) + each + b"sum4" for each in events))
    return path


def wrote(folder: Path, *events: bytes) -> list[WrittenFile]:
    folder.mkdir()
    write(folder / NAME.replace("17", str(len(folder.name))), *events)
    return written_files(folder, "/code", Evidence(), Ignored())[0]


def test_a_value_that_differs_is_a_result_and_a_clock_is_not(tmp_path: Path) -> None:
    first = wrote(tmp_path / "one", event(1.0, 1, b"loss", 0.25), event(2.0, 2, b"loss", 0.125))
    later = wrote(tmp_path / "later", event(8.0, 1, b"loss", 0.25), event(9.0, 2, b"loss", 0.125))
    other = wrote(tmp_path / "other run", event(1.0, 1, b"loss", 0.25), event(2.0, 2, b"loss", 0.13))
    ends, texts = files_apart(Texts(Evidence(), Evidence()), first, later)
    assert (ends, [each.kind for each in texts]) == ([], ["clock times of its records"])
    [end], _ = files_apart(Texts(Evidence(), Evidence()), first, other)
    assert end.told == "run 1 wrote 'step 2 loss 0.125', run 2 'step 2 loss 0.13'"


def long_field(number: int, value: bytes) -> bytes:
    size = bytes([len(value) & 127 | 128, len(value) >> 7 & 127 | 128, len(value) >> 14])
    return bytes([number << 3 | 2]) + size + value


@pytest.mark.parametrize("kind", ["event", "summary", "value"])
def test_a_message_of_endless_fields_is_none(kind: str, tmp_path: Path) -> None:
    few, many = b"\x18\x01" * 99_000, b"\x18\x01" * 101_000
    numbers = {"event": [], "summary": [5], "value": [1, 5]}[kind]
    for number in numbers:
        few, many = long_field(number, few), long_field(number, many)
    assert event_lines(write(tmp_path / NAME, few)) is not None
    assert event_lines(write(tmp_path / NAME, many)) is None


def test_long_lines_are_hashed_beyond_a_number_of_characters() -> None:
    lines, other = ([f"{n}{'x' * (1 << 20)}{end}" for n in range(100)] for end in "ab")
    first, second = (bounded(each, "values", 1000) for each in (lines, other))
    assert sum(map(len, first)) < 64 << 20
    assert first[-1].startswith("37 more values: SHA-256 ")
    assert first[-1] != second[-1]


def test_scalars_are_shown_with_all_their_bits(tmp_path: Path) -> None:
    near = struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", 0.1))[0] + 1))[0]
    path = write(tmp_path / NAME, event(1.0, 1, b"a", 0.1), event(1.0, 1, b"a", near))
    assert event_lines(path) == ("step 1 a 0.1", "step 1 a 0.10000001")


def test_a_time_is_explained_although_it_was_rounded(tmp_path: Path) -> None:
    sides, files = [], []
    for name, seconds in (("one", 0.44223397123), ("other", 0.38728545001)):
        sides.append(Evidence(items=[Item(("value", "train.py", 3, 0), seconds, 0, 0)]))
        files.append(wrote(tmp_path / name, event(1.0, 1, b"seconds", seconds)))
    ends, texts = files_apart(Texts(*sides), *files)
    assert (ends, [each.kind for each in texts]) == ([], ["duration or speed"])


@pytest.mark.parametrize(
    ("values", "measured"),
    [
        ((b"\xd04\x99", b"\xd05\x99"), ("04", "05")),
        ((b"\x12\x03", b"\x13\x03"), ("12", "13")),
        ((b"\xff", b"\\xff"), ("1", "2")),
        ((b"\n", "\u240a".encode()), ("1", "2")),
    ],
)
def test_bytes_that_differ_are_no_measured_numbers(
    values: tuple[bytes, bytes], measured: tuple[str, str], tmp_path: Path
) -> None:
    site = ("text", "train.py", 3, 0)
    sides, files = [], []
    for name, value, digits in zip(("one", "other"), values, measured, strict=True):
        sides.append(Evidence(items=[Item(site, digits, 0, 0)]))
        tagged = b"\x09" + struct.pack("<d", 1.0) + field(5, field(1, field(1, b"time") + field(5, value)))
        files.append(wrote(tmp_path / name, tagged))
    [_], _ = files_apart(Texts(*sides), *files)


@pytest.mark.parametrize(
    "content",
    [b"x", b"\xff" * 40, struct.pack("<QI", 3, 0) + b"\x0b\x01\x01sum4", struct.pack("<QI", 9, 0) + b"cut"],
    ids=["short", "endless", "group", "cut"],
)
def test_what_is_no_event_file_has_no_lines(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    assert event_lines(tmp_path / NAME) is None


def hyperparameters(*, swapped: bool, rate: float, began: float) -> bytes:
    def entry(key: bytes, value: float) -> bytes:
        return field(1, field(1, key) + field(2, b"\x11" + struct.pack("<d", value)))

    entries = [entry(b"lr", rate), entry(b"width", 6.0)]
    mapping = b"".join(entries[::-1] if swapped else entries)
    session = field(3, mapping + field(4, b"\x11" + struct.pack("<d", began)))
    tagged = field(1, b"_hparams_/session_start_info") + field(9, field(1, field(2, session)))
    return field(5, field(1, tagged))


@pytest.mark.parametrize(("rate", "counts"), [(0.005, False), (0.006, True)])
def test_what_the_hyperparameters_are_counts_and_their_order_does_not(
    rate: float, counts: bool, tmp_path: Path
) -> None:
    times = 1927627201.25, 1927627203.75
    sides = [Evidence(began=each - 1, ended=each + 1) for each in times]
    one = wrote(tmp_path / "one", hyperparameters(swapped=False, rate=0.005, began=times[0]))
    other = wrote(tmp_path / "other run", hyperparameters(swapped=True, rate=rate, began=times[1]))
    ends, _ = files_apart(Texts(*sides), one, other)
    assert bool(ends) == counts


def test_a_number_of_single_precision_may_be_off_by_its_last_digit() -> None:
    lines = [["speed 33.914127"], ["speed 20.788761"]]
    sides = [
        Evidence(items=[Item(("value", "a.py", 3, 0), each, 0, 40)]) for each in (33.9141248, 20.7887609)
    ]
    assert Texts(*sides).compare(lines[0], lines[1], "a file", many=False)[0] is None
