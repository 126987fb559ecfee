"""Documents about the images of a home."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprobuild.host.home import Home
from reprobuild.verify.evidence.document_store import (
    MOST,
    as_lines,
    forget_all_but,
    keep,
    keep_vote,
    kept,
    mark_elsewhere,
)

IMAGE = "sha256:" + "a" * 64


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_the_latest_of_a_kind_is_kept_and_votes_stand_beside_each_other(home: Home) -> None:
    keep(home, IMAGE, {"test-result": b'{"a": 1}'})
    keep(home, IMAGE, {"test-result": b'{"a": 2}'})
    votes = {keep_vote(home, IMAGE, document).name for document in (b'{"v": 1}', b'{"v": 2}', b'{"v": 1}')}
    found = kept(home, IMAGE)
    assert found.keys() == {"test-result.json", *votes}
    assert len(votes) == 2
    assert found["test-result.json"] == b'{"a": 2}'
    assert kept(home, "sha256:" + "b" * 64) == {}


def test_no_more_than_a_bound_is_read(home: Home) -> None:
    for number in range(MOST + 3):
        keep_vote(home, IMAGE, json.dumps({"v": number}).encode())
    assert len(kept(home, IMAGE)) == MOST


def test_what_is_about_images_that_are_gone_goes_with_them(home: Home) -> None:
    here, gone, loaded, voted = ("sha256:" + digit * 64 for digit in "abcd")
    for each in (here, gone, loaded):
        keep(home, each, {"provenance": b"{}", "sbom": b"{}"})
    keep_vote(home, gone, b"{}")
    keep_vote(home, voted, b"{}")
    mark_elsewhere(home, loaded)
    mark_elsewhere(home, "sha256:" + "e" * 64)
    assert forget_all_but(home, {here}) == 6
    assert [bool(kept(home, each)) for each in (here, gone, loaded, voted)] == [True, False, True, True]
    assert len(list(home.folder("evidence").iterdir())) == 3


def test_one_document_a_line() -> None:
    assert as_lines({"b": b'{\n "b": 1\n}\n', "a": b"{}"}) == b'{}\n{  "b": 1 }\n'
