"""git on loopback: refs, commits, submodules and logins; and a folder by the files that git tracks."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from reprobuild.errors import FetchError, ReprobuildError, ResolveError
from reprobuild.sources import git as module
from reprobuild.sources.git import Found, read_commit, resolve_ref, tracked
from reprobuild.sources.source_tree import TreeEntry
from support.git_server import GitServer, commit, git, git_server, repository
from support.server import listening

FILES = {"pyproject.toml": "[project]\nname = 'a'\n", "src/a/__init__.py": ""}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with git_server(tmp_path / "served") as served:
        yield served


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def names(entries: list[TreeEntry]) -> list[str]:
    return sorted(entry.path.decode() for entry in entries)


def test_a_branch_a_tag_and_head_are_the_commit_that_they_name(server: GitServer) -> None:
    first = repository(server.root / "a", FILES)
    git(server.root / "a", "tag", "-a", "v1", "-m", "x")
    git(server.root / "a", "tag", "light")
    second = commit(server.root / "a", {"more.py": ""})
    url = f"{server.url}/a/.git"
    assert resolve_ref(url, "main") == Found(second, "branch")
    assert resolve_ref(url, "v1") == Found(first, "tag")
    assert resolve_ref(url, "light") == Found(first, "tag")
    assert resolve_ref(url, "") == Found(second, "HEAD")
    assert resolve_ref(url, first) == Found(first, "commit")
    with pytest.raises(ResolveError, match="has no branch or tag 'none'"):
        resolve_ref(url, "none")
    with pytest.raises(ResolveError, match="has no branch") as caught:
        resolve_ref(url, first[:12])
    assert "all of its 40 digits" in caught.value.hint


def test_an_earlier_commit_is_read_as_it_was(server: GitServer, work: Path) -> None:
    first = repository(server.root / "a", FILES)
    (server.root / "a/run.sh").write_text("x")
    (server.root / "a/run.sh").chmod(0o700)
    (server.root / "a/link").symlink_to("run.sh")
    second = commit(server.root / "a", {"pyproject.toml": "changed"})
    url = f"{server.url}/a/.git"
    entries = read_commit(url, first, "", work)
    assert names(entries) == ["pyproject.toml", "src/a/__init__.py"]
    assert entries[0].content == FILES["pyproject.toml"].encode()
    (work / "later").mkdir()
    later = {entry.path: entry for entry in read_commit(url, second, "main", work / "later")}
    assert (later[b"run.sh"].kind, later[b"link"].kind, later[b"link"].content) == (
        "executable",
        "link",
        b"run.sh",
    )


def test_a_commit_that_is_gone(server: GitServer, work: Path) -> None:
    repository(server.root / "a", FILES)
    with pytest.raises(FetchError, match="the commit 0123456789abcdef0123456789abcdef01234567 was not found"):
        read_commit(f"{server.url}/a/.git", "0123456789abcdef0123456789abcdef01234567", "main", work)


def test_a_fetch_is_bounded_in_bytes_and_time(
    server: GitServer, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = "".join(hashlib.sha256(bytes([n, m])).hexdigest() for n in range(256) for m in range(8))
    head = repository(server.root / "large", {"noise": noise})
    url = f"{server.url}/large/.git"
    monkeypatch.setattr(module, "MOST_FETCHED", 50_000)
    with pytest.raises(FetchError, match=r"large/\.git: it has more than 50,000 bytes") as caught:
        module.read_commit(url, head, "main", work)
    assert "archive" in caught.value.hint
    monkeypatch.setattr(module, "MOST_FETCHED", 1 << 30)
    with monkeypatch.context() as no_time:
        no_time.setattr(module, "_SECONDS", 0.0)
        budget = module._Budget(work, url)
    with pytest.raises(FetchError, match=r"large/\.git: it was not fetched within"):
        budget.fetch(["version"], work)


def test_a_submodule_is_part_of_the_tree(server: GitServer, work: Path) -> None:
    repository(server.root / "inner", {"inner.py": "1"})
    repository(server.root / "a", FILES)
    git(server.root / "a", "submodule", "add", "-q", str(server.root / "inner"), "libs/inner")
    git(server.root / "a", "config", "-f", ".gitmodules", "submodule.libs/inner.url", "../../inner/.git")
    outer = commit(server.root / "a", {})
    entries = read_commit(f"{server.url}/a/.git", outer, "main", work)
    assert "libs/inner/inner.py" in names(entries)


@pytest.mark.parametrize("address", ["", "https://[", "https://\u2100x/", "git@-oProxyCommand=x:y"])
def test_a_submodule_of_this_machine_or_of_no_address_is_refused(
    address: str, server: GitServer, work: Path
) -> None:
    repository(server.root / "inner", {"inner.py": "1"})
    repository(server.root / "a", FILES)
    git(server.root / "a", "submodule", "add", "-q", str(server.root / "inner"), "libs/inner")
    if address:
        git(server.root / "a", "config", "-f", ".gitmodules", "submodule.libs/inner.url", address)
    outer = commit(server.root / "a", {})
    # git 2.47 refuses some of them itself, as it gets them.
    with pytest.raises(
        FetchError, match=r"which is not an https, http or ssh address|disallowed submodule url"
    ):
        read_commit(f"{server.url}/a/.git", outer, "main", work)


def test_a_login_is_that_of_netrc(server: GitServer, work: Path) -> None:
    first = repository(server.root / "a", FILES)
    server.login = "user:secret"
    url = f"{server.url}/a/.git"
    with pytest.raises(ResolveError, match="git cannot read it") as caught:
        resolve_ref(url, "main")
    assert "login" in caught.value.hint
    Path(os.environ["HOME"], ".netrc").write_text("machine 127.0.0.1 login user password secret\n")
    assert resolve_ref(url, "main").commit == first
    assert names(read_commit(url, first, "", work)) == ["pyproject.toml", "src/a/__init__.py"]


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(ResolveError, match=r"127\.0\.0\.1:9/a: git cannot read it"):
        resolve_ref("http://127.0.0.1:9/a", "main")


def test_a_server_that_is_not_there_has_one_status_for_a_branch_and_a_commit(work: Path) -> None:
    with pytest.raises(ResolveError, match=r"127\.0\.0\.1:9/a: git cannot read it"):
        read_commit("http://127.0.0.1:9/a", "0" * 40, "", work)


# --- A folder ---


def test_a_folder_is_what_git_tracks_as_it_is_now(tmp_path: Path) -> None:
    repository(tmp_path / "a", {**FILES, "gone.py": ""})
    (tmp_path / "a/not-added.py").write_text("")
    (tmp_path / "a/gone.py").unlink()
    (tmp_path / "a/pyproject.toml").write_text("changed")
    entries = tracked(tmp_path / "a")
    assert names(entries) == ["pyproject.toml", "src/a/__init__.py"]
    assert entries[0].content == b"changed"
    assert names(tracked(tmp_path / "a/src")) == ["a/__init__.py"]


def test_a_folder_in_no_repository(tmp_path: Path) -> None:
    with pytest.raises(ResolveError, match="git does not know which files belong to it") as caught:
        tracked(tmp_path)
    assert "git add" in caught.value.hint


def test_a_folder_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path / "a", FILES)
    read = Path.readlink

    def changing(path: Path) -> Path:
        (tmp_path / "a/pyproject.toml").write_text("another length")
        return read(path)

    (tmp_path / "a/link").symlink_to("pyproject.toml")
    git(tmp_path / "a", "add", "-A")
    monkeypatch.setattr(Path, "readlink", changing)
    with pytest.raises(ResolveError, match="changed while it was read"):
        tracked(tmp_path / "a")


def test_a_folder_within_that_leads_outside(tmp_path: Path) -> None:
    repository(tmp_path / "a", FILES)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/__init__.py").write_text("secret")
    (tmp_path / "a/src/a/__init__.py").unlink()
    (tmp_path / "a/src/a").rmdir()
    (tmp_path / "a/src/a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResolveError, match="leads outside"):
        tracked(tmp_path / "a")


# --- The archive ---


def test_settings_of_the_repository_that_the_user_is_in_reach_no_server(
    server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a repository may be a stranger's: its settings can name another server, or a program to run."""
    first = repository(server.root / "a", FILES)
    here = tmp_path / "here"
    repository(here, FILES)
    git(here, "config", "protocol.ext.allow", "always")
    git(here, "config", f"url.ext::touch {tmp_path}/ran %S.insteadOf", server.url)
    monkeypatch.chdir(here)
    assert resolve_ref(f"{server.url}/a/.git", "main").commit == first
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("ends", [True, False])
def test_a_server_that_drips_is_named(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """git itself gives up, or else the time limit does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(b"0")
                    time.sleep(0.2)

        def log_message(self, *_: object) -> None:
            """Keep it off the tests' output."""

    settings = [*module._SETTINGS, *(["http.lowSpeedTime=1"] if ends else [])]
    monkeypatch.setattr(module, "_SETTINGS", settings)
    monkeypatch.setattr(module, "_SECONDS", 30.0 if ends else 1.0)
    with listening(Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}/a.git"
        with pytest.raises(ReprobuildError, match=re.escape(url)) as caught:
            resolve_ref(url, "main")
    assert ("too slow" if ends else "did not end within 1 s") in caught.value.message


@pytest.mark.parametrize("fetches", [False, True])
def test_an_answer_without_end_does_not_take_the_memory(
    fetches: bool, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git holds the list of refs whole."""
    monkeypatch.setattr(module, "_MOST_MEMORY", 128 << 20)
    sent = 0

    class Endless(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            nonlocal sent
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while sent < 1 << 30:
                    sent += self.wfile.write(bytes(1 << 20))

    def ask(url: str) -> object:
        return read_commit(url, "a" * 40, "main", work) if fetches else resolve_ref(url, "main")

    with listening(Endless) as httpd:
        url = f"http://127.0.0.1:{httpd.server_port}/a"
        with pytest.raises(ReprobuildError, match=f"{url}: "):
            ask(url)
    assert sent < 512 << 20
