"""What a run's libraries told of its files is a stranger's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import RepeatError
from reprobuild.twice import library_formats
from reprobuild.twice.evidence import Evidence, read_evidence
from reprobuild.twice.first_difference import files_apart
from reprobuild.twice.ignored import Ignored
from reprobuild.twice.library_formats import HEAD, is_such, told_contents
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.written import WrittenFile, written_file

DIGEST = "ab" * 32


def test_each_file_has_its_lines(tmp_path: Path) -> None:
    for number, first in enumerate(("a", "b")):
        record = {"sha256": f"{number}" * 64, "lines": [first, "1 | 2"]}
        (tmp_path / f"{number}.contents").write_text(json.dumps(record) + "\n")
    assert told_contents(tmp_path) == {"0" * 64: (f"{HEAD}a", "1 | 2"), "1" * 64: (f"{HEAD}b", "1 | 2")}


@pytest.mark.parametrize(
    "record",
    [
        [],
        {"sha256": DIGEST},
        {"sha256": DIGEST, "lines": []},
        {"sha256": "no digest", "lines": ["a"]},
        {"sha256": DIGEST, "lines": [1]},
        {"sha256": DIGEST, "lines": ["a" * 4001]},
        {"sha256": DIGEST, "lines": "abc"},
    ],
    ids=str,
)
def test_a_record_that_is_not_as_it_should_be_is_an_error(record: Any, tmp_path: Path) -> None:
    (tmp_path / "1.contents").write_text(json.dumps(record) + "\n")
    with pytest.raises(RepeatError, match="cannot be read"):
        read_evidence(tmp_path, 0, 1)


def test_no_link_is_followed_and_no_more_is_read_than_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_formats, "MOST_BYTES", 20)
    path = tmp_path / "1.contents"
    path.write_text(json.dumps({"sha256": DIGEST, "lines": ["a"]}) + "\n")
    with pytest.raises(ValueError, match="more than"):
        told_contents(tmp_path)
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(ValueError, match=r"1\.contents"):
        told_contents(tmp_path)


def test_lines_count_for_those_bytes_and_such_formats_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1\0")
    evidence = Evidence(contents={"e21ea4d2bba5b7d1c4a5b8d6dd8e3b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b": ("a",)})
    assert written_file(path, "/out/a.parquet", evidence, Ignored()).lines is None
    digest = written_file(path, "/out/a.parquet", evidence, Ignored(), sums=True).sha256
    evidence = Evidence(contents={digest: ("a", "b")})
    assert written_file(path, "/out/a.parquet", evidence, Ignored()).lines == ("a", "b")
    path.write_bytes(b"\x89PNG\0")
    digest = written_file(path, "/out/a.png", evidence, Ignored(), sums=True).sha256
    assert written_file(path, "/out/a.png", Evidence(contents={digest: ("a",)}), Ignored()).lines is None
    assert not is_such(b"\x89PNG\r\n\x1a\n")
    assert is_such(b"\0" * 8 + b"DUCK")


def test_equal_values_in_other_bytes_are_told() -> None:
    """Else the runs would repeat bit for bit, though two bytes differ."""
    one, other = (
        WrittenFile(path="/out/a.h5", size=9, digest=digest, lines=(f"{HEAD}HDF5", "a: 1"), tensors={})
        for digest in ("a", "b")
    )
    ends, texts = files_apart(Texts(Evidence(), Evidence()), [one], [other])
    assert (ends, [each.kind for each in texts]) == ([], ["difference beside its values"])
