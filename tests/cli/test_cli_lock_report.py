"""``lock --report``: what a pull request that moves a lock says, with an index on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from support.index import Index

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands", "support.family"]

REPORT = Path("changes.md")


def test_changes_yanked_releases_and_vulnerabilities(family: Index, apt: None, call: Call) -> None:
    assert call("lock", "--cuda", "12.1", "--package", "filelock==1.0").status == 0
    said = call("lock", "--report", str(REPORT))
    assert (said.status, said.err.count("warning")) == (0, 0)
    text = REPORT.read_text()
    assert "nothing changed" in text
    assert "#### Yanked releases\n\nNone.\n" in text
    assert "Not looked up: `--osv` names no source" in text

    for file in family.files:
        file.yanked = file.project == "filelock" and "-1.0-" in file.name
    Path("osv").mkdir()
    package = {"ecosystem": "PyPI", "name": "filelock"}
    entry = {
        "id": "GHSA-1",
        "modified": "2024-05-01T00:00:00Z",
        "summary": "a | race",
        "affected": [
            {
                "package": package,
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
            }
        ],
    }
    Path("osv/GHSA-1.json").write_text(json.dumps(entry))
    said = call("lock", "--report", str(REPORT), "--osv", "osv")
    text = REPORT.read_text()
    assert "| `filelock` | `1.0` | yanked: " in text
    assert "| `filelock` | `1.0` | GHSA-1 | 1.1 | a \\| race |" in text
    assert "1 advisory of the ecosystem PyPI, the newest of 2024-05-01" in text
    assert "Not looked up: 2 Debian packages." in text
    assert "warning: filelock 1.0: GHSA-1" in said.err

    request = Path("envs/torch-cu121.toml")
    request.write_text(request.read_text().replace("filelock==1.0", "filelock"))
    assert call("lock", "--upgrade", "--report", str(REPORT), "--osv", "osv").status == 0
    text = REPORT.read_text()
    assert "| python | `filelock` | `1.0` | `1.1` |" in text
    assert "#### Known vulnerabilities\n\nNone.\n" in text


def test_a_check_writes_no_report(call: Call) -> None:
    said = call("lock", "--check", "--report", str(REPORT))
    assert said.status == 2
    assert "cannot be combined with --report" in said.err
