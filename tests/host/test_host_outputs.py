"""Files that a user names: whole or not at all, by one process at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reprobuild.errors import StorageError
from reprobuild.host.console import Console
from reprobuild.host.outputs import one_writer
from support.disk import tiny_disk
from support.hearing import Hearing

CONSOLE = Console(quiet=True)


def put(file: Path, text: str, console: Console = CONSOLE) -> None:
    with one_writer(file, console) as partial:
        partial.write_text(text)


def test_a_second_writer_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    file, console = tmp_path / "a.tar", Hearing()
    with ThreadPoolExecutor(1) as pool:
        with one_writer(file, CONSOLE) as partial:
            second = pool.submit(put, file, "second", console)
            assert console.said.wait(60)
            partial.write_text("first")
            assert not file.exists()
        second.result()
    assert console.heard == [f"waiting for another reprobuild, which writes {file}"]
    assert file.read_text() == "second"
    assert [*tmp_path.iterdir()] == [file]


def test_many_writers_at_once_leave_the_file_of_one(tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    texts = [chr(65 + n) * 100_000 for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert len([*pool.map(lambda text: put(file, text), texts)]) == len(texts)
    assert file.read_text() in texts
    assert [*tmp_path.iterdir()] == [file]


def test_what_a_killed_writer_left_is_written_over(tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    program = "import os, sys; from pathlib import Path; from reprobuild.host.console import Console; "
    program += "from reprobuild.host.outputs import one_writer\n"
    program += "with one_writer(Path(sys.argv[1]), Console(quiet=True)) as partial:\n"
    program += "    partial.write_text('a long text of the first'); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", program, str(file)], check=False).returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == [".a.tar.partial"]
    put(file, "new")
    assert file.read_text() == "new"
    assert [*tmp_path.iterdir()] == [file]


def test_a_block_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 1 << 20) as disk:
        file = disk / "a.tar"
        put(file, "old")
        with pytest.raises(StorageError, match=r"No space left on device \(0 B free\)"):
            put(file, "new" * (1 << 20))
        assert file.read_text() == "old"
        assert [*disk.iterdir()] == [file]


def test_it_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    """What a private index gave is for others only where its user's files are."""
    before = os.umask(0o077)
    try:
        put(tmp_path / "a.tar", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.tar").stat().st_mode) == 0o600


def test_a_folder_without_locks_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a network file system is."""

    def none(_file: object, _operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", none)
    put(tmp_path / "a.tar", "x")
    assert (tmp_path / "a.tar").read_text() == "x"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="gone"):
        put(tmp_path / "gone" / "a.tar", "x")
