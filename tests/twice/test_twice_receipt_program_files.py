from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprobuild.host.sandbox import Bind
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.receipt import program_files
from reprobuild.twice.receipt.program_files import (
    beside,
    changed_since,
    input_file,
    inputs,
    line_digests,
    look,
)
from support.receipts import sha256


@pytest.fixture
def binds(tmp_path: Path) -> list[Bind]:
    (tmp_path / "code/data").mkdir(parents=True)
    (tmp_path / "code/train.py").write_bytes(b"a\nb\n")
    (tmp_path / "code/data/set.bin").write_bytes(b"\0")
    return [Bind(source=tmp_path / "code", destination="/code", writable=True)]


def test_a_file_has_its_digest_and_those_of_its_lines(binds: list[Bind]) -> None:
    (found,), missing = inputs(["/code/train.py", "/usr/lib/x.py", "/code/none"], binds)
    assert (found.path, found.size, found.sha256) == ("/code/train.py", 4, sha256(b"a\nb\n"))
    assert found.lines == "".join(sha256(line)[:6] for line in (b"a", b"b", b""))
    assert missing == []


def test_a_large_file_has_no_lines(binds: list[Bind], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_files, "MOST_TEXT", 3)
    assert input_file("/code/train.py", binds, 1000).lines == ""
    assert input_file("/code/train.py", binds, 1000).sha256 == sha256(b"a\nb\n")


def test_lines_with_a_token_are_left_out() -> None:
    assert line_digests(b"a\nhf_abcdefghijklmnop\n") == ""


def test_no_link_is_followed_out_of_a_folder(binds: list[Bind], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "code/link").symlink_to(tmp_path / "secret")
    (tmp_path / "code/all").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "code/pipe")
    odd = ["/code/all/secret", "/code/link", "/code/pipe"]
    found, missing = inputs([*odd, "/code/data", "/code/gone"], binds)
    assert found == []
    assert [each.partition(", which cannot be read: ")[0] for each in missing] == odd
    assert inputs(odd, binds, guessed=frozenset(odd)) == ([], [])
    others, whole = beside(binds, frozenset())
    assert [file.path for file in others] == ["/code/data/set.bin", "/code/train.py"]
    assert whole


def test_what_a_receipt_lacks_is_named(binds: list[Bind], monkeypatch: pytest.MonkeyPatch) -> None:
    (binds[0].source / ".env").write_text("KEY=1")
    (binds[0].source / "b").write_text("1")
    monkeypatch.setattr(program_files, "MOST_FILES", 1)
    asked = ["/code/.env", "/code/b", "/code/data/set.bin", "/code/train.py", "/code/\udcff"]
    found, missing = inputs(asked, binds, frozenset(["/code/data/set.bin"]))
    assert [file.path for file in found] == ["/code/b"]
    assert missing == [
        "the digest of /code/.env, which may hold secrets by its name",
        "what it read of /code/data/set.bin, which the run itself changed",
        "the files that it read beyond 1",
    ]


def test_the_others_are_bounded(binds: list[Bind], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_files, "MOST_BESIDE", 1)
    found, whole = beside(binds, frozenset())
    assert len(found) == 1
    assert not whole


def test_what_a_run_changed_is_found_by_its_facts(binds: list[Bind]) -> None:
    code = binds[0].source
    before = look(binds)
    (code / "train.py").write_bytes(b"a\nc\n")
    (code / "data/set.bin").unlink()
    (code / "out").mkdir()
    (code / "out/last.txt").write_text("1")
    (code / "newest").symlink_to("out/last.txt")
    written, changed = changed_since(before, binds, Evidence())
    assert {file.path: file.sha256 or file.digest for file in written} == {
        "/code/data/set.bin": "removed",
        "/code/newest": "a link to out/last.txt",
        "/code/out/last.txt": sha256(b"1"),
        "/code/train.py": sha256(b"a\nc\n"),
    }
    assert changed == {file.path for file in written}
    assert changed_since(look(binds), binds, Evidence()) == ([], frozenset())
