"""``image``: a build that does not pass its self-test, and names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.cli import image
from support.reports import FAILED, a_report, printing
from support.small_images import LOCK, NAME

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands", "support.small_images"]


def test_a_failed_self_test_is_status_9_and_no_name(container: Any, call: Call) -> None:
    container(printing(a_report(FAILED), status=1))
    said = call("image", str(LOCK), "--json")
    assert (said.status, json.loads(said.out)["error"]["kind"]) == (9, "SelfTestError")
    assert "conv2d: two processes differ" in said.err
    assert "output: expected cccc" in said.err
    assert "hint: the candidate stays without a name" in said.err
    [image] = json.loads(call("images", "--json").out)
    assert image["names"] == []
    assert "<candidate>" in call("images").out
    assert call("run", NAME, "true").status == 10


def test_a_bad_name_is_refused_before_anything_is_done(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "make_image", lambda *_: pytest.fail("made"))
    said = call("image", str(LOCK), "--tag", "Team/X")
    assert (said.status, said.out) == (10, "")
    assert "as in team/torch:2.4.1-cu121" in said.err
