"""Advisories in OSV's format against locked versions: which affect, which may, and what is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import ResolveError
from reprobuild.net.session import session
from reprobuild.resolve.vulnerabilities import Advisories, find_vulnerabilities


def advisory(number: int = 1, **affected: Any) -> dict[str, Any]:
    package = {"ecosystem": "PyPI", "name": affected.pop("name", "Pillow")}
    return {
        "id": f"PYSEC-2024-{number}",
        "aliases": ["CVE-2024-1"],
        "summary": "a buffer | overflows",
        "modified": "2024-05-01T00:00:00Z",
        "affected": [{"package": package, **affected}],
    }


def bounds(*events: tuple[str, str]) -> dict[str, Any]:
    return {"ranges": [{"type": "ECOSYSTEM", "events": [{kind: text} for kind, text in events]}]}


def look_up(folder: Path, entry: Any, *versions: str) -> Advisories:
    folder.mkdir(exist_ok=True)
    (folder / "entry.json").write_text(entry if isinstance(entry, str) else json.dumps(entry))
    with session() as http:
        return find_vulnerabilities(str(folder), [("pillow", version) for version in versions], http)


@pytest.mark.parametrize(
    ("affected", "version", "expected"),
    [
        (bounds(("introduced", "0"), ("fixed", "10.3.0")), "10.2.0", True),
        (bounds(("introduced", "0"), ("fixed", "10.3.0")), "10.3.0", None),
        (bounds(("introduced", "0"), ("fixed", "10.3.0")), "10.2.0+cu121", True),
        (bounds(("introduced", "9"), ("last_affected", "10.2.0")), "10.2", True),
        (bounds(("introduced", "9"), ("last_affected", "10.2.0")), "8.4", None),
        (bounds(("fixed", "3"), ("introduced", "2"), ("fixed", "5"), ("introduced", "4")), "4.1", True),
        (bounds(("fixed", "3"), ("introduced", "2"), ("fixed", "5"), ("introduced", "4")), "3.5", None),
        ({"versions": ["10.2.0"]}, "10.2", True),
        ({"versions": ["10.1.0"]}, "10.2", None),
        (bounds(("introduced", "0"), ("fixed", "2004d")), "10.2", False),
        ({"versions": ["10.2"], **bounds(("introduced", "0"), ("fixed", "2004d"))}, "10.2", True),
        ({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, "10.2", False),
        ({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}], "versions": ["9"]}, "10.2", None),
        ({"name": "other", "versions": ["10.2"]}, "10.2", None),
    ],
)
def test_whether_a_version_is_affected(
    tmp_path: Path, affected: dict[str, Any], version: str, expected: bool | None
) -> None:
    """``expected``: certainly, perhaps (False), or not (None)."""
    found = look_up(tmp_path, advisory(**affected), version).found
    assert [each.is_certain for each in found] == ([] if expected is None else [expected])


def test_what_is_told_of_an_advisory_and_its_source(tmp_path: Path) -> None:
    found = look_up(tmp_path, advisory(**bounds(("introduced", "0"), ("fixed", "10.3"))), "10.2")
    assert (found.entries, found.newest) == (1, "2024-05-01")
    (each,) = found.found
    assert (each.id, each.aliases, each.fixed) == ("PYSEC-2024-1", ("CVE-2024-1",), ("10.3",))


def test_a_withdrawn_advisory_does_not_count(tmp_path: Path) -> None:
    entry = advisory(versions=["10.2"]) | {"withdrawn": "2024-06-01T00:00:00Z"}
    assert look_up(tmp_path, entry, "10.2").found == ()


@pytest.mark.parametrize(
    "entry",
    [
        "[]",
        "{}",
        "no JSON",
        "[" * 100_000,
        json.dumps({"id": "X"}),
        json.dumps(advisory(ranges=[{"type": "ECOSYSTEM", "events": [{"invented": "1"}]}])),
        json.dumps(advisory(ranges=[{"type": "ECOSYSTEM"}])),
        json.dumps(advisory(name=1, versions=["10.2"])),
    ],
)
def test_an_odd_entry_is_refused(tmp_path: Path, entry: str) -> None:
    with pytest.raises(ResolveError, match=r"entry\.json is not an advisory in OSV's format"):
        look_up(tmp_path, entry, "10.2")


def test_a_zip_file_and_what_is_none(tmp_path: Path) -> None:
    file = tmp_path / "all.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("PYSEC-2024-1.json", json.dumps(advisory(versions=["10.2"])))
    with session() as http:
        assert len(find_vulnerabilities(str(file), [("pillow", "10.2")], http).found) == 1
        file.write_bytes(b"nothing")
        with pytest.raises(ResolveError, match="cannot be read"):
            find_vulnerabilities(str(file), [], http)
        with pytest.raises(ResolveError, match="cannot be read"):
            find_vulnerabilities(str(tmp_path / "none.zip"), [], http)
        (tmp_path / "empty").mkdir()
        with pytest.raises(ResolveError, match="has no advisories"):
            find_vulnerabilities(str(tmp_path / "empty"), [], http)
