from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.cli.misspelt import SETTINGS, misspelt

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands"]


def test_a_misspelt_setting_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_MEMROY", "8G")
    said = call("-q", "images")
    assert said.status == 0
    assert "warning: REPROBUILD_MEMROY is not a setting: is REPROBUILD_MEMORY meant?\n" in said.err


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("REPROBUILD_HOMEE", "REPROBUILD_HOME"),
        ("REPROBUILD_DEBIAN_MIROR", "REPROBUILD_DEBIAN_MIRROR"),
        ("REPROBUILD_SNAPSHOTS", "REPROBUILD_SNAPSHOT"),
    ],
)
def test_what_is_meant(name: str, meant: str) -> None:
    assert misspelt([name, "PATH"]) == [(name, meant)]


@pytest.mark.parametrize("name", ["REPROBUILD_HOME", "REPROBUILD_SEED", "REPROBUILD_REV", "MEMROY"])
def test_other_variables_are_a_team_s_own(name: str) -> None:
    assert misspelt([name]) == []


def test_every_setting_of_the_page_is_known() -> None:
    page = (Path(__file__).parents[2] / "docs/settings.md").read_text()
    assert {*re.findall(r"REPROBUILD_([A-Z_]+)", page)} <= SETTINGS
