from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.lock import merge
from reprobuild.lock.merge import sides
from support.work import grows_as_its_input


@pytest.mark.parametrize("style", ["merge", "diff3"])
def test_both_sides_of_what_git_wrote(tmp_path: Path, style: str) -> None:
    texts = {"ours": "a\nb\nours\nc\nd\n", "base": "a\nb\nc\nd\n", "theirs": "a\nb\ntheirs\nc\nother\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    command = ["git", "merge-file", "-p", *(["--diff3"] if style == "diff3" else []), *texts]
    merged = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert ("|||||||" in merged) == (style == "diff3")
    assert sides(merged) == ("a\nb\nours\nc\nother\n", "a\nb\ntheirs\nc\nother\n")


@pytest.mark.parametrize("text", ["", "a\n", "<<<<<<< x\na\n", "<<<<<<< x\na\n=======\nb\n", ">>>>>>> y\n"])
def test_what_has_no_conflict(text: str) -> None:
    assert sides(text) is None


@given(st.lists(st.sampled_from(["<<<<<<< x", "||||||| b", "=======", ">>>>>>> y", "a", "b"])))
def test_no_line_is_lost_outside_of_conflicts(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    found = sides(text)
    if found is not None:
        assert max(map(len, found)) < len(text)
        assert sides("z\n" + text) == tuple("z\n" + side for side in found)


def test_marks_that_never_end_take_no_more_work_than_their_lines() -> None:
    """A lock of 8 MB with them took days."""
    assert grows_as_its_input(lambda count: sides("<<<<<<<\n|||||||\n" * count), merge)
