from __future__ import annotations

import errno
import os
import pwd
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import reprobuild
from reprobuild.host import process, removal
from reprobuild.host.removal import remove_tree


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "shut/inner").mkdir(parents=True)
    (top / "shut/inner/file").write_text("x")
    (tmp_path / "kept").mkdir(mode=0o700)
    (top / "link").symlink_to(tmp_path / "kept")
    remove_tree(top)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("name", "depth"), [("d", 5_000), ("d" * 200, 300)])
def test_a_tree_of_any_depth_goes_with_few_files_open(tmp_path: Path, name: str, depth: int) -> None:
    """Deeper than Python's stack and a process's files, and with paths longer than Linux takes."""
    top = tmp_path / "top"
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=folder)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, limits[0]), limits[1]))
    try:
        remove_tree(top)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.core
def test_nothing_is_removed_through_a_mount(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount")
    top, kept = tmp_path / "to\tp", tmp_path / "kept"
    (top / "dev").mkdir(parents=True)
    kept.mkdir()
    (kept / "file").write_text("x")
    subprocess.run(["mount", "--bind", kept, top / "dev"], check=True)
    try:
        with pytest.raises(OSError, match="something is mounted in it"):
            remove_tree(top)
    finally:
        subprocess.run(["umount", top / "dev"], check=True)
    assert (kept / "file").read_text() == "x"
    remove_tree(top)
    assert not top.exists()


def test_what_is_refused_is_an_os_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(removal, "_remove", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(process, "which", lambda _: None)
    with pytest.raises(PermissionError):
        remove_tree(tmp_path)


@pytest.mark.core
def test_an_ordinary_user_s_unreadable_folders_go_too(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    nobody = pwd.getpwnam("nobody")
    folder, library = tmp_path / "work", tmp_path / "library"
    # Where the project lies, somebody else may not look.
    shutil.copytree(Path(reprobuild.__file__).parent, library / "reprobuild")
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/file").write_text("x")
    for path in (tmp_path, folder, folder / "inner", folder / "inner/file"):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    for parent in tmp_path.parents:  # pytest's are for their owner alone
        if parent.is_relative_to("/tmp") and parent != Path("/tmp"):
            parent.chmod(0o755)
    (folder / "inner").chmod(0)
    code = (
        "from pathlib import Path; from reprobuild.host.removal import remove_tree\n"
        f"remove_tree(Path({str(folder)!r}))"
    )
    subprocess.run(
        ["/usr/bin/python3", "-c", code],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        env={"PYTHONPATH": str(library), "PATH": os.environ["PATH"]},
        cwd="/",
        check=True,
    )
    assert not folder.exists()


@pytest.mark.parametrize(("depth", "goes"), [(20, True), (3_000, sys.version_info >= (3, 13))])
def test_on_a_disk_that_takes_no_new_name_a_tree_goes_or_stays_and_nothing_else_fails(
    depth: int, goes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        if goes:
            remove_tree(top)
        else:
            with pytest.raises(OSError, match="No space left"):
                remove_tree(top)
    assert top.exists() is not goes
    if not goes:
        remove_tree(top)
