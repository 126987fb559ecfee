"""What a run wrote: bytes with holes, texts, links, and what was removed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from reprobuild.errors import RepeatError
from reprobuild.host.removal import remove_tree
from reprobuild.twice import written
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.first_difference import files_apart
from reprobuild.twice.ignored import Ignored
from reprobuild.twice.text_differences import Texts
from reprobuild.twice.written import WrittenFile, cached_files, written_files
from support.nested_folders import nested

NOON = Evidence(began=1927627201.0, ended=1927627202.0)
"""The evidence of a run at noon of 2031-01-31."""


def wrote(folder: Path) -> list[WrittenFile]:
    found, whole = written_files(folder, "/code", NOON, Ignored())
    assert whole
    return found


@pytest.mark.parametrize("name", ["log.bin", "weights.npy", "model.safetensors"])
def test_of_a_file_of_terabytes_only_what_is_there_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / name).open("wb") as file:
        os.truncate(file.fileno(), 4 << 40)
        os.pwrite(file.fileno(), b"x", 3 << 40)
    reads: list[int] = []
    pread = os.pread

    def counted(file: int, size: int, at: int) -> bytes:
        assert len(reads) < 10, "holes are read"
        reads.append(at)
        return pread(file, size, at)

    monkeypatch.setattr(os, "pread", counted)
    [one] = wrote(tmp_path)
    assert one.size == 4 << 40
    assert 3 << 40 in reads


def test_texts_and_archives_mean_the_same_where_only_times_differ(tmp_path: Path) -> None:
    sides = []
    for time_ in ("12:00:01", "12:00:02"):
        folder = tmp_path / time_.replace(":", "")
        folder.mkdir()
        (folder / "log.txt").write_text(f"2031-01-31 {time_} step 1 loss 0.5")
        sides.append(wrote(folder))
    assert sides[0][0].digest != sides[1][0].digest
    assert sides[0][0].meaning(NOON) == sides[1][0].meaning(NOON)
    ends, texts = files_apart(Texts(NOON, NOON), *sides)
    assert (ends, [text.kind for text in texts]) == ([], ["time of day"])


def test_a_text_of_more_than_a_mebibyte_is_compared_by_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = []
    for second in (1, 2):
        folder = tmp_path / str(second)
        folder.mkdir()
        (folder / "train.log").write_text(f"2031-01-31 12:00:0{second} start\n" + "loss 0.25\n" * 120_000)
        sides.append(wrote(folder))
    assert files_apart(Texts(NOON, NOON), *sides)[0] == []
    monkeypatch.setattr(written, "MOST_HELD", 0)
    assert wrote(tmp_path / "1")[0].lines is None


def test_links_are_not_followed_and_what_is_left_out_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc/passwd")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "train.cpython-311.pyc").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    assert [(f.path, f.digest) for f in wrote(tmp_path)] == [
        ("/code/out", "a link to /etc/passwd"),
        ("/code/pipe", "no file"),
    ]


def test_the_name_of_an_empty_folder_and_bytecode_elsewhere_count(tmp_path: Path) -> None:
    (tmp_path / "best-0.91").mkdir()
    (tmp_path / "model.pyc").write_bytes(b"x")
    assert [file.path for file in wrote(tmp_path)] == ["/code/model.pyc", "/code/best-0.91"]


def test_what_the_user_bound_below_tmp_is_compared(tmp_path: Path) -> None:
    (tmp_path / "score.txt").write_text("0.91")
    found, _ = written_files(tmp_path, "/tmp/out", NOON, Ignored())
    assert [file.path for file in found] == ["/tmp/out/score.txt"]


def test_a_link_may_lead_to_a_drawn_name(tmp_path: Path) -> None:
    sides, evidence = [], []
    for name in (uuid.uuid4().hex, uuid.uuid4().hex):
        evidence.append(Evidence(names={"uuids": (name,)}))
        folder = tmp_path / name
        folder.mkdir()
        (folder / "latest").symlink_to(f"runs/{name}")
        sides.append(written_files(folder, "/code", evidence[-1], Ignored())[0])
    ends, texts = files_apart(Texts(*evidence), *sides)
    assert (ends, [text.kind for text in texts]) == ([], ["drawn name"])


def test_a_byte_is_no_text_that_spells_it(tmp_path: Path) -> None:
    sides = []
    for name, content in (("one", b"\xff \\xff"), ("other", b"\\xff \xff")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "out.txt").write_bytes(content)
        sides.append(wrote(tmp_path / name))
    assert files_apart(Texts(NOON, NOON), *sides)[0]


def test_caches_are_not_compared_but_mentioned(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "result.txt").write_text("0.91")
    assert wrote(tmp_path) == []
    assert [*cached_files(tmp_path, "/code")] == ["/code/.cache/result.txt"]


def test_folders_deeper_than_a_stack_are_read(tmp_path: Path) -> None:
    deep = tmp_path / Path(*["d"] * 1_200)
    for depth in range(100, 1_300, 100):
        (tmp_path / Path(*["d"] * min(depth, 1_200))).mkdir(parents=True)
    (deep / "file").write_text("x")
    assert [each.size for each in wrote(tmp_path)] == [1]
    remove_tree(tmp_path / "d")  # pytest's own removal calls itself for each level


def test_more_files_than_are_compared_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "MOST_FILES", 2)
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("x")
    found, whole = written_files(tmp_path, "/code", NOON, Ignored())
    assert (len(found), whole) == (2, False)


@pytest.mark.parametrize("read", [wrote, lambda folder: cached_files(folder, "/code")])
def test_folders_deeper_than_a_path_are_refused(tmp_path: Path, read: Callable[[Path], object]) -> None:
    nested(tmp_path)
    with pytest.raises(RepeatError, match="the program left folders nested too deep to read: ddd"):
        read(tmp_path)
    remove_tree(tmp_path)
