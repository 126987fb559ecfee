"""Sources by their address in a resolve: git, a folder, an archive; what is locked of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.errors import BuildError, LockError, ReprobuildError, ResolveError
from reprobuild.lock.reader import parse_lock
from support.addressed import files, source_of
from support.building_resolve import Resolve
from support.git_server import GitServer, repository
from support.index import Index
from support.locks import LOCK
from support.sdists import sdist, serve

pytest_plugins = ["support.family", "support.addressed"]


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


@pytest.mark.slow
def test_a_lock_has_it_and_reads_it_back(resolve: Resolve, server: GitServer, index: Index) -> None:
    tree = files(requires=("filelock",))
    tree["pyproject.toml"] += '[tool.uv.sources]\nfilelock = { git = "https://git.example/filelock" }\n'
    repository(server.root / "tool", {f"py/{name}": text for name, text in tree.items()})
    text = f"tool @ git+{server.url}/tool/.git#subdirectory=py"
    lost = "filelock is taken from the index"
    with pytest.raises(ResolveError, match="filelock was not found") as caught:
        resolve(text)
    assert lost in caught.value.hint
    index.add("filelock", "1.0")
    resolve(text)
    assert [line for line in resolve.notes if lost in line]
    tool, _ = source_of(resolve)
    lock = replace(LOCK, python=[*LOCK.python, tool], build=resolve.build)
    assert parse_lock(lock.dump(), "x") == lock
    assert tool.source is not None
    assert tool.source.subdirectory == "py"
    for old, new in (
        (tool.source.commit, tool.source.commit[:12]),
        (f"{server.url}/tool", "file:///etc"),
        ('subdirectory = "py"', 'subdirectory = "../py"'),
        ('type = "git"', 'type = "hg"'),
    ):
        with pytest.raises(LockError, match="vcs"):
            parse_lock(lock.dump().replace(old, new), "x")
