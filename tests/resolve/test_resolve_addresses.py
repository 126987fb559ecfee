"""Sources by their address in a resolve: git, a folder, an archive; what is locked of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import BuildError, FetchError, LockError, ReprobuildError, ResolveError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock, PythonPackage, SourceArchive
from reprobuild.lock.reader import parse_lock
from reprobuild.sources import workshop
from reprobuild.sources.direct_source import bring, check_folders
from support.building_resolve import Resolve
from support.git_server import GitServer, commit, git_server, repository
from support.index import Index
from support.locks import LOCK
from support.python_root import PYTHON, python_root
from support.resolving import request
from support.sdists import PYPROJECT, backend, sdist, serve, serve_pip

pytest_plugins = ["support.family"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("crun")
    return python_root(tmp_path_factory.mktemp("root"))


@pytest.fixture
def resolve(tmp_path: Path, root: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> Resolve:
    monkeypatch.setattr(workshop, "system_folders", lambda *_: [root])
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    (tmp_path / "project/envs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    serve_pip(index)
    return Resolve(Home(tmp_path / "home"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with git_server(tmp_path / "served") as served:
        yield served


def files(version: str = "1.0", requires: tuple[str, ...] = ()) -> dict[str, str]:
    return {"pyproject.toml": PYPROJECT, "backend.py": backend("tool", version, requires=requires)}


def source_of(resolve: Resolve) -> tuple[PythonPackage, SourceArchive]:
    (tool,) = (package for package in resolve.python if package.name == "tool")
    assert tool.source is not None
    return tool, tool.source


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
def test_a_lock_has_it_and_reads_it_back(resolve: Resolve, server: GitServer) -> None:
    repository(server.root / "tool", {f"py/{name}": text for name, text in files().items()})
    text = f"tool @ git+{server.url}/tool/.git#subdirectory=py"
    resolve(text)
    (tool,) = resolve.python
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
