"""A source by its address, in a lock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.errors import LockError, ResolveError
from reprobuild.lock.reader import parse_lock
from support.addressed import files, source_of
from support.building_resolve import Resolve
from support.git_server import GitServer, repository
from support.index import Index
from support.locks import LOCK

pytest_plugins = ["support.family", "support.addressed"]


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
