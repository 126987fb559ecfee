"""``selftest --fleet``: reports of many machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.reports import (
    HASH,
    OTHER,
    a_report,
    with_bits,
)

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands"]


def written(folder: Path, name: str, *checks: dict[str, Any], **changes: Any) -> str:
    (folder / name).write_text(json.dumps(a_report(*checks, **changes)))
    return name


def test_a_fleet_is_a_page_and_a_table_and_names_who_deviates(call: Call, folder: Path) -> None:
    for name, bits in (("a", HASH), ("b", HASH), ("c", OTHER)):
        written(folder, f"{name}.json", with_bits(bits))
    said = call("selftest", "--fleet", "a.json", "b.json")
    assert said.status == 0
    assert said.out.splitlines()[:2] == ["CHECK   DEVICE  a  b", "conv2d  cpu     A  A"]
    assert "No machine deviates" in (folder / "fleet.html").read_text()
    said = call("selftest", "--fleet", "a.json", "b.json", "c.json", "-o", "page.html")
    assert said.status == 9
    assert "conv2d  cpu     A  A  B!" in said.out
    assert "c: conv2d on cpu has other bits than on a, b" in said.err
    assert "c deviates" in (folder / "page.html").read_text()
    table = json.loads(call("selftest", "--fleet", "a.json", "b.json", "c.json", "--json").out)
    assert table["deviations"][0]["machine"] == "c"


def test_a_name_of_a_report_does_nothing_to_a_terminal(call: Call, folder: Path) -> None:
    names = [
        written(folder, "a\x1b[2K.json", with_bits(HASH)),
        written(folder, "b.json", with_bits(HASH), program=OTHER),
    ]
    assert "compared apart (a\\u001b[2K: " in call("selftest", "--fleet", *names).err


def test_reports_of_one_name_are_told_apart_by_their_folders(call: Call, folder: Path) -> None:
    for name in ("x", "y"):
        (folder / name).mkdir()
        written(folder / name, "r.json", with_bits(HASH))
    assert "x/r.json  y/r.json" in call("selftest", "--fleet", "x/r.json", "y/r.json").out
