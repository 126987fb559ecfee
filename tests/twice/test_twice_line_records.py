"""Reading a trace of lines, and kept values, that anybody may have written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RepeatError
from reprobuild.in_image.twice import lines as recorder
from reprobuild.in_image.twice import settings
from reprobuild.twice import line_records
from reprobuild.twice.line_records import has_failed, kept_values, read_lines

PROCESS = {"k": "process", "format": 1, "rank": "", "worker": "", "name": "MainProcess", "argv": ["train.py"]}
PLACE = {"k": "place", "n": 0, "at": ["train.py", 3, "main", "x = draw()"], "end": 4}
LINE: dict[str, Any] = {
    "k": "line", "n": 1, "up": 0, "p": 0, "t": "MainThread", "at": 5,
    "in": {"y": "0" * 12}, "out": {"x": ["~" + "a" * 12, "1", [7]]}, "drew": {"torch": ["", "b" * 12]},
    "gens": {"rng": [4, "rng.random()"]}, "inside": {"4": ["c" * 12, "b,"]},
}  # fmt: skip
KEPT = {"k": "kept", "t": "MainThread", "n": 0, "held": "AAAA"}


def written(folder: Path, *records: object, name: str = "1-1.lines") -> Path:
    (folder / name).write_text("".join(json.dumps(each) + "\n" for each in records))
    return folder


def test_a_trace_is_read(tmp_path: Path) -> None:
    assert line_records.FORMAT == recorder.FORMAT
    assert line_records.RETURNED == recorder.RETURNED
    [stream] = read_lines(written(tmp_path, PROCESS, PLACE, LINE, KEPT))
    assert stream.key == ("", "", "MainProcess", "train.py")
    [line] = stream.records
    assert (line.generators["rng"].line, line.generators["rng"].text) == (4, "rng.random()")
    assert [(at.line, at.text, each) for at, each in line.inside.items()] == [(4, "b,", "c" * 12)]
    assert (line.place.line, line.end, line.after["x"]) == (3, 4, ("~" + "a" * 12, "1"))
    (tmp_path / "2-2.lines").write_text(json.dumps(PROCESS) + "\n" + json.dumps(PLACE)[:9])
    assert [len(each.records) for each in read_lines(tmp_path)] == [1, 0]  # it was killed as it wrote


@pytest.mark.parametrize(
    "records",
    [
        [PLACE],
        [{**PROCESS, "format": 2}],
        [PROCESS, PROCESS],
        [PROCESS, LINE],
        [PROCESS, PLACE, {**LINE, "k": "other"}],
        [PROCESS, PLACE, {**LINE, "more": 1}],
        [PROCESS, PLACE, {**LINE, "in": []}],
        [PROCESS, PLACE, {**LINE, "out": {"x": "a"}}],
        [PROCESS, PLACE, {**LINE, "out": {"x": ["A" * 12, "", []]}}],
        [PROCESS, PLACE, {**LINE, "out": {"x": ["a" * 12, ""]}}],
        [PROCESS, PLACE, {**LINE, "out": {"x": ["a" * 12, "", [1] * 17]}}],
        [PROCESS, PLACE, {**LINE, "n": 1.5}],
        [PROCESS, PLACE, {**LINE, "at": 2**70}],
        [PROCESS, PLACE, {**LINE, "t": "x" * 301}],
        [PROCESS, PLACE, {**LINE, "drew": {"torch": "ab"}}],
        [PROCESS, PLACE, {**LINE, "gens": {"rng": 4}}],
        [PROCESS, PLACE, {**LINE, "inside": {"4": ["c" * 12]}}],
        [PROCESS, PLACE, {**LINE, "inside": {"four": ["c" * 12, "b,"]}}],
        [PROCESS, {**PLACE, "at": ["train.py"]}],
        [PROCESS, 5],
        [PROCESS, "[" * 5000],
    ],
)
def test_records_that_no_recorder_writes(records: list[object], tmp_path: Path) -> None:
    with pytest.raises(RepeatError, match="the records of a run cannot be read"):
        read_lines(written(tmp_path, *records))


def test_files_that_are_none_and_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "1.lines")
    with pytest.raises(RepeatError, match=r"1\.lines"):
        read_lines(tmp_path)
    (tmp_path / "1.lines").unlink()
    (tmp_path / "1.lines").symlink_to("/etc/hostname")
    with pytest.raises(RepeatError, match=r"1\.lines"):
        read_lines(tmp_path)
    (tmp_path / "1.lines").unlink()
    written(tmp_path, PROCESS, PLACE, LINE)
    monkeypatch.setattr(line_records, "MOST_BYTES", 100)
    with pytest.raises(RepeatError, match="larger than"):
        read_lines(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(line_records, "MOST_RECORDS", 2)
    with pytest.raises(RepeatError, match="more than 2 records"):
        read_lines(tmp_path)
    monkeypatch.setattr(line_records, "MOST_FILES", 0)
    with pytest.raises(RepeatError, match="processes"):
        read_lines(tmp_path)


def test_kept_values_come_back_as_a_variable_and_too_many_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept_values(written(tmp_path, PROCESS)) is None
    many = [{**KEPT, "n": number, "held": os.urandom(3000).hex()} for number in range(60)]
    found = kept_values(written(tmp_path, PROCESS, *many))
    assert found is not None
    assert list(found) == [settings.VALUES]
    monkeypatch.setattr(line_records, "MOST_VALUES", 1000)
    assert kept_values(tmp_path) is None
    with pytest.raises(RepeatError, match="a kept value"):
        kept_values(written(tmp_path, PROCESS, {**KEPT, "held": 5}))


def test_that_values_could_not_travel_is_read(tmp_path: Path) -> None:
    assert not has_failed(written(tmp_path, PROCESS, KEPT))
    assert has_failed(written(tmp_path, PROCESS, KEPT, {"k": "failed", "why": "TypeError"}))
