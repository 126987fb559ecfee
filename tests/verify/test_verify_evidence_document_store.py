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
from support.hosts import quiet_host

IMAGE = "sha256:" + "a" * 64


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_the_latest_of_a_kind_is_kept_and_votes_stand_beside_each_other(home: Home) -> None:
    keep(home, IMAGE, {"test-result": b'{"a": 1}'})
    keep(home, IMAGE, {"test-result": b'{"a": 2}'})
    votes = {f"{keep_vote(home, IMAGE, b'{}', key * 64).stem}.json" for key in "aba"}
    found = kept(quiet_host(home), IMAGE)
    assert found.keys() == {"test-result.json", *votes}
    assert len(votes) == 2
    assert found["test-result.json"] == b'{"a": 2}'
    assert kept(quiet_host(home), "sha256:" + "b" * 64) == {}


@pytest.mark.parametrize("harm", [b"", b"{}", b'{"a": 2}'])
def test_a_damaged_document_is_named_and_dropped_alone(
    home: Home, harm: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(home, IMAGE, {"sbom": b'{"a": 1}', "test-result": b"{}"})
    vote = keep_vote(home, IMAGE, b'{"v": 1}', "a" * 64)
    document = vote.with_name("sbom.sealed")
    for path in (vote, document):
        seal = path.read_bytes()[:65] if path is document and harm.startswith(b'{"a') else b""
        path.write_bytes(seal + harm)
    assert kept(quiet_host(home), IMAGE) == {"test-result.json": b"{}"}
    said = capsys.readouterr().err
    assert all(f"{path} is damaged, so it was removed" in said for path in (vote, document))
    assert not vote.exists()
    assert not document.exists()


def test_no_more_than_a_bound_is_read(home: Home) -> None:
    for number in range(MOST + 3):
        keep_vote(home, IMAGE, json.dumps({"v": number}).encode(), f"{number:064x}"[::-1])
    assert len(kept(quiet_host(home), IMAGE)) == MOST


def test_what_is_about_images_that_are_gone_goes_with_them(home: Home) -> None:
    here, gone, loaded, voted = ("sha256:" + digit * 64 for digit in "abcd")
    for each in (here, gone, loaded):
        keep(home, each, {"provenance": b"{}", "sbom": b"{}"})
    keep_vote(home, gone, b"{}", "a" * 64)
    keep_vote(home, voted, b"{}", "a" * 64)
    mark_elsewhere(home, loaded)
    mark_elsewhere(home, "sha256:" + "e" * 64)
    assert forget_all_but(home, {here}) == 201
    left = [bool(kept(quiet_host(home), each)) for each in (here, gone, loaded, voted)]
    assert left == [True, False, True, True]
    assert len(list(home.folder("evidence").iterdir())) == 3


def test_one_document_a_line() -> None:
    assert as_lines({"b": b'{\n "b": 1\n}\n', "a": b"{}"}) == b'{}\n{  "b": 1 }\n'
