"""What a stranger's program left behind is read without following anything out of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.host import untrusted_files
from reprobuild.host.removal import remove_tree
from support.nested_folders import nested


@pytest.fixture
def left(tmp_path: Path) -> Path:
    (tmp_path / "host").mkdir()
    (tmp_path / "host/secret").write_text("secret")
    left = tmp_path / "left"
    (left / "a/b").mkdir(parents=True)
    (left / "a/b/file").write_text("plain")
    (left / "a/link").symlink_to(tmp_path / "host/secret")
    (left / "folder").symlink_to(tmp_path / "host")
    os.mkfifo(left / "pipe")
    return left


def test_all_is_listed_and_nothing_is_followed(left: Path) -> None:
    found = {path: stat.S_IFMT(status.st_mode) for path, status in untrusted_files.walk(left)}
    assert found == {
        "a": stat.S_IFDIR,
        "a/b": stat.S_IFDIR,
        "a/b/file": stat.S_IFREG,
        "a/link": stat.S_IFLNK,
        "folder": stat.S_IFLNK,
        "pipe": stat.S_IFIFO,
    }


def test_a_file_is_opened(left: Path) -> None:
    with untrusted_files.opened(left, "a/b/file") as file:
        assert file.read() == b"plain"


@pytest.mark.parametrize(
    "path", ["a/link", "folder/secret", "pipe", "a", "a/../../host/secret", "/etc/passwd", "a//b/file", "."]
)
def test_nothing_else_is_opened(left: Path, path: str) -> None:
    with pytest.raises(BuildError, match="not a regular file below the folder"):
        untrusted_files.opened(left, path)


def test_what_is_missing_is_told_apart(left: Path) -> None:
    with pytest.raises(FileNotFoundError):
        untrusted_files.opened(left, "a/b/none")


def test_a_folder_is_none_when_a_link_leads_to_it(left: Path) -> None:
    assert untrusted_files.folder(left, "a/b") == left / "a/b"
    assert untrusted_files.folder(left, "folder") is None
    assert untrusted_files.folder(left, "none/b") is None
    (left / "to-b").symlink_to("a/b")
    assert untrusted_files.folder(left, "to-b") is None


def test_a_folder_that_is_a_link_is_not_walked(left: Path) -> None:
    with pytest.raises(BuildError, match="expected a folder"):
        list(untrusted_files.walk(left / "folder"))


def test_a_flood_of_files_ends(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_files, "MOST_PATHS", 3)
    with pytest.raises(BuildError, match="more than 3 files"):
        list(untrusted_files.walk(left))


def test_folders_deeper_than_a_path_are_refused(tmp_path: Path) -> None:
    nested(tmp_path)
    with pytest.raises(BuildError, match="folders in it are nested too deep to read: ddd"):
        list(untrusted_files.walk(tmp_path))
    remove_tree(tmp_path)
