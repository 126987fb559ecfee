"""Releases that an index has as source archives alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from support.building_resolve import Resolve
from support.fixtures import fixtures_of
from support.index import Index
from support.sdists import sdist, serve

pytest_plugins = ["support.family"]
globals().update(fixtures_of("support.built_sources"))


@pytest.mark.slow
def test_a_newer_release_from_source_comes_before_an_older_wheel(resolve: Resolve, index: Index) -> None:
    index.add("tool", "1.0.dev5")
    serve(index, "tool", "2.0", sdist("tool", "2.0"))
    assert (resolve("tool"), resolve.notes) == ({"tool": "2.0"}, [])
    assert resolve("tool==1.0.dev5") == {"tool": "1.0.dev5"}


@pytest.mark.slow
def test_a_release_with_wheels_for_other_pythons_is_built(resolve: Resolve, index: Index) -> None:
    index.add("top", "1.0", requires=["tool"])
    index.add("tool", "1.0", tag="cp27-cp27m-manylinux1_x86_64")
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    assert resolve("top") == {"top": "1.0", "tool": "1.0"}
    assert {p.name for p in resolve.python if p.source is not None} == {"tool"}


@pytest.mark.slow
def test_a_wheel_whose_name_has_no_version_is_passed_over(resolve: Resolve, index: Index) -> None:
    file = serve(index, "tool", "1.0", sdist("tool", "1.0"))
    index.files.append(replace(file, name="tool-of2004-py3-none-any.whl", body=b"no wheel"))
    assert resolve("tool") == {"tool": "1.0"}


@pytest.mark.slow
def test_a_dash_in_the_version_of_an_archive_is_not_the_end_of_the_name(
    resolve: Resolve, index: Index
) -> None:
    """As of piq-0.5.5-1.tar.gz, whose version is not 1."""
    serve(index, "tool", "0.5.5-1", b"no archive")
    serve(index, "tool", "0.8.0", sdist("tool", "0.8.0"))
    assert (resolve("tool"), resolve.notes) == ({"tool": "0.8.0"}, [])


@pytest.mark.slow
def test_as_of_counts_for_source_archives(resolve: Resolve, index: Index) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    serve(index, "tool", "2.0", sdist("tool", "2.0")).uploaded = "2025-01-01T00:00:00Z"
    assert resolve("tool", as_of=date(2024, 12, 1)) == {"tool": "1.0"}


@pytest.mark.slow
def test_an_archive_in_a_folder_of_find_links_is_built(
    resolve: Resolve, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = sdist("tool", "1.0")
    (tmp_path / "tool-1.0.tar.gz").write_bytes(body)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    assert resolve("tool") == {"tool": "1.0"}
    assert resolve.python[0].source is not None
    assert resolve.python[0].source.sha256 == hashlib.sha256(body).hexdigest()


@pytest.mark.slow
def test_an_index_of_plain_pages_gives_no_sizes(resolve: Resolve, index: Index) -> None:
    index.json = False
    body = sdist("tool", "1.0")
    serve(index, "tool", "1.0", body)
    assert resolve("tool") == {"tool": "1.0"}
    assert resolve.python[0].source is not None
    assert resolve.python[0].source.size == len(body)
