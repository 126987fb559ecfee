"""Sources by their address in a resolve: git, a folder, an archive; what is locked of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import BuildError, ReprobuildError, ResolveError
from support.addressed import files, source_of
from support.building_resolve import Resolve
from support.fixtures import fixtures_of
from support.git_server import GitServer, repository
from support.index import Index
from support.sdists import sdist, serve

pytest_plugins = ["support.family"]
globals().update(fixtures_of("support.addressed"))


def test_a_folder_outside_the_project_is_refused(resolve: Resolve, tmp_path: Path) -> None:
    repository(tmp_path / "elsewhere", files())
    with pytest.raises(ReprobuildError, match="is not a folder below"):
        resolve("tool @ ../../elsewhere")


@pytest.mark.slow
def test_an_archive_by_its_address(resolve: Resolve, index: Index) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    index.files[-1].project = "hidden"
    text = f"tool @ {index.root}/files/tool-1.0.tar.gz"
    assert resolve(text) == {"tool": "1.0"}
    _, source = source_of(resolve)
    assert (source.kind, source.url, source.filename) == ("archive", text[7:], "tool-1.0.tar.gz")
    with pytest.raises(ResolveError, match="gives other bytes than expected"):
        resolve(f"{text}#sha256={'0' * 64}")


@pytest.mark.slow
def test_another_name_than_the_project_s_own(resolve: Resolve, server: GitServer) -> None:
    repository(server.root / "other", files())
    with pytest.raises(BuildError, match="its build made a wheel of tool"):
        resolve(f"other @ git+{server.url}/other/.git")
