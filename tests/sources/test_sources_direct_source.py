"""Repositories and folders that are locked by commit or content."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import FetchError, LockError
from reprobuild.fetch.store import Store
from reprobuild.lock.model import Lock
from reprobuild.sources.direct_source import bring, check_folders
from support.addressed import files, source_of
from support.building_resolve import Resolve
from support.fixtures import fixtures_of
from support.git_server import GitServer, commit, repository
from support.index import Index
from support.python_root import PYTHON
from support.resolving import request
from support.sdists import backend

pytest_plugins = ["support.family"]
globals().update(fixtures_of("support.addressed"))


def locked(resolve: Resolve, *packages: str) -> Lock:
    return resolve.lock(request(packages=list(packages), python=PYTHON), resolve.python)


@pytest.mark.slow
def test_a_branch_is_locked_by_its_commit_and_stays(
    resolve: Resolve, index: Index, server: GitServer
) -> None:
    first = repository(server.root / "tool", files(requires=("other<2",)))
    index.add("other", "1.0")
    index.add("other", "2.0")
    text = f"tool @ git+{server.url}/tool/.git@main"
    assert resolve(text) == {"tool": "1.0", "other": "1.0"}
    tool, source = source_of(resolve)
    assert (source.kind, source.commit, source.ref) == ("vcs", first, "main")
    assert f"tool: the branch main of {server.url}/tool/.git is at {first[:12]} now" in resolve.notes[0]
    lock = locked(resolve, text)
    commit(server.root / "tool", files("2.0"))
    assert resolve(text, existing=lock)["tool"] == "1.0"
    assert resolve(text)["tool"] == "2.0"
    # Another machine fetches it again, and holds it to the hash.
    Store(resolve.host.home).remove(source.sha256)
    bring([tool], resolve.host)
    assert Store(resolve.host.home).has(source.sha256, source.size)


def test_a_folder_is_locked_by_what_git_tracks(resolve: Resolve) -> None:
    repository(Path.cwd(), {f"libs/x/{name}": text for name, text in files().items()})
    text = "tool @ ../libs/x"
    assert resolve(text) == {"tool": "1.0"}
    _, source = source_of(resolve)
    assert (source.kind, source.url) == ("directory", "../libs/x")
    assert any("not an editable install" in note for note in resolve.notes)
    lock = locked(resolve, text)
    check_folders(lock, "x")
    Path("libs/x/backend.py").write_text(backend("tool", "2.0"))
    with pytest.raises(LockError, match=r"x: changed since it was locked: \.\./libs/x \(tool\)"):
        check_folders(lock, "x")
    Store(resolve.host.home).remove(source.sha256)
    with pytest.raises(FetchError, match="are not those that were locked"):
        bring(lock.python, resolve.host)
    assert resolve(text, existing=lock) == {"tool": "2.0"}
