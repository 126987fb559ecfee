from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import HostError, StorageError
from reprobuild.host.console import Console, size_text
from reprobuild.host.home import (
    Home,
    atomic_write,
    claim,
    free_bytes,
    make_folders,
    open_regular,
    raise_if_full,
    storage_errors,
    try_claim,
)
from support.disk import tiny_disk


class Ears(Console):
    """A console that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.heard: list[str] = []

    def step(self, text: str) -> None:
        self.heard.append(text)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs the program it gets as its first line, and then waits to be killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", "exec(input())"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    yield process
    process.kill()
    process.communicate()


def start(holder: subprocess.Popen[bytes], program: str) -> None:
    assert holder.stdin is not None
    assert holder.stdout is not None
    head = "from pathlib import Path; from reprobuild.host.console import Console; "
    head += "from reprobuild.host.home import *; "
    holder.stdin.write((head + program + "\n").encode())
    holder.stdin.flush()
    assert holder.stdout.readline() == b"ready\n"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"REPROBUILD_HOME": "/a/b", "XDG_DATA_HOME": "/x"}, "/a/b"),
        ({"XDG_DATA_HOME": "/x"}, "/x/reprobuild"),
        ({"XDG_DATA_HOME": "relative"}, "~/.local/share/reprobuild"),
        ({"REPROBUILD_HOME": ""}, "~/.local/share/reprobuild"),
        ({"REPROBUILD_HOME": "~/here"}, "~/here"),
    ],
)
def test_the_root_comes_from_the_environment(environ: dict[str, str], expected: str) -> None:
    assert Path(expected).expanduser() == Home.from_environment(environ).root


def test_a_relative_home_is_fixed_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert tmp_path / "here" == Home.from_environment({"REPROBUILD_HOME": "here"}).root


def test_a_user_without_a_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 4_000_000)  # not in the password file
    with pytest.raises(HostError) as caught:
        Home.from_environment({})
    assert "REPROBUILD_HOME" in caught.value.hint
    with pytest.raises(HostError):
        Home.from_environment({"REPROBUILD_HOME": "~nobody-here/x"})
    with pytest.raises(HostError, match="is not UTF-8"):
        Home.from_environment({"REPROBUILD_HOME": os.fsdecode(b"/x/\xff")})


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_folders_and_files_have_the_same_modes_under_any_umask(home: Home, umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = home.folder("store")
        atomic_write(folder / "file", b"x")
        with home.scratch("work") as scratch, home.lock("name", Ears()):
            assert mode(scratch) == 0o755
    finally:
        os.umask(before)
    assert [mode(home.root), mode(folder)] == [0o700, 0o700]
    assert mode(folder / "file") == 0o644


def test_a_part_that_was_open_to_all_is_shut(home: Home) -> None:
    """As those of earlier versions were; the home itself may hold something else, so it stays as it is."""
    (home.root / "roots").mkdir(parents=True, mode=0o755)
    home.root.chmod(0o755)
    home.folder("roots")
    assert [mode(home.root), mode(home.root / "roots")] == [0o755, 0o700]


@pytest.mark.core
def test_another_user_of_the_machine_gets_at_nothing(home: Home) -> None:
    """Neither a program that is setuid in an image's files, nor a wheel of a private index."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    for part in ("roots", "store", "layers", "oci", "reports", "tmp"):
        file = home.folder(part) / "file"
        file.write_bytes(Path("/bin/true").read_bytes())
        file.chmod(0o4755)
        for folder in [p for p in home.root.parents if str(p).startswith(tempfile.gettempdir() + "/")]:
            folder.chmod(0o755)
        nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
        for argv in (["cat", str(file)], [str(file)]):
            with pytest.raises((PermissionError, subprocess.CalledProcessError)):
                subprocess.run(argv, check=True, capture_output=True, **nobody)


def test_a_file_in_the_way_of_a_folder_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        make_folders(tmp_path / "file" / "below")
    with pytest.raises(StorageError, match="Not a directory"):
        make_folders(tmp_path / "file")


def test_a_lock_lets_one_in_at_a_time_and_tells_who_waits(home: Home) -> None:
    ears, inside, order = Ears(), threading.Event(), list[str]()

    def second() -> None:
        inside.wait()
        with home.lock("an image/1:2", ears):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with home.lock("an image/1:2", ears):
        inside.set()
        while not ears.heard:
            thread.join(0.01)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert ears.heard == [f"waiting for another reprobuild, which holds 'an image/1:2' in {home.root}"]
    with home.lock("build", ears):
        thread = threading.Thread(target=lambda: home.lock("build", ears).__enter__())
        thread.start()
        while len(ears.heard) < 2:
            thread.join(0.01)
    thread.join()
    assert ears.heard[1] == f"waiting for another reprobuild, which builds, tests or cleans up in {home.root}"


def test_locks_of_different_names_do_not_meet(home: Home) -> None:
    ears = Ears()
    with home.lock("a", ears), home.lock("b", ears):
        assert ears.heard == []


def test_the_lock_of_a_killed_process_is_free(home: Home, holder: subprocess.Popen[bytes]) -> None:
    start(
        holder,
        f"c = Home(Path({str(home.root)!r})).lock('x', Console()); c.__enter__(); "
        "print('ready', flush=True); input()",
    )
    path = home.root / "locks" / "x"
    assert try_claim(path) is None
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with home.lock("x", Ears()):
        pass


def test_who_waits_for_a_file_that_is_renamed_gets_a_new_one(tmp_path: Path) -> None:
    path, got = tmp_path / "partial", list[bytes]()
    first = claim(path)
    thread = threading.Thread(target=lambda: _read_claimed(path, got))
    thread.start()
    thread.join(0.05)
    first.write(b"old")
    path.rename(tmp_path / "final")
    first.close()
    thread.join()
    assert got == [b""]
    assert path.exists()


def _read_claimed(path: Path, got: list[bytes]) -> None:
    with claim(path) as file:
        got.append(file.read())


def test_a_lock_that_is_there_is_claimed_without_a_write(home: Home) -> None:
    """A disk whose quota is used up refuses even a change of mode, and then `clean` could free nothing."""
    with home.lock("build", Console()):
        path = home.root / "locks/build"
        before = path.stat().st_ctime_ns
    with home.lock("build", Console()):
        assert path.stat().st_ctime_ns == before


def test_a_link_is_not_followed_to_claim(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(StorageError):
        claim(tmp_path / "link")
    assert not (tmp_path / "target").exists()


def test_scratch_is_removed_at_the_end_and_on_an_error(home: Home) -> None:
    with home.scratch("a") as folder:
        (folder / "file").write_text("x")
    assert not folder.exists()
    with pytest.raises(ZeroDivisionError), home.scratch("a") as folder:
        _ = 1 / 0
    assert not folder.exists()


def test_sweep_takes_what_a_killed_process_left_and_nothing_of_a_live_one(
    home: Home, holder: subprocess.Popen[bytes]
) -> None:
    start(
        holder,
        f"c = Home(Path({str(home.root)!r})).scratch('dead'); (c.__enter__() / 'f').write_text(''); "
        "print('ready', flush=True); input()",
    )
    [other] = home.folder("tmp").iterdir()
    with home.scratch("live") as mine:
        assert home.sweep() == 0
        assert other.exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert home.sweep() == 1
        assert [mine] == list(home.folder("tmp").iterdir())


def test_scratch_survives_sweeps_that_run_all_the_time(home: Home) -> None:
    done = threading.Event()

    def sweep() -> None:
        while not done.is_set():
            home.sweep()

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        for _ in range(100):
            with home.scratch("a") as folder:
                (folder / "file").write_text("x")
                assert (folder / "file").read_text() == "x"
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("sync", [True, False])
def test_an_atomic_write_waits_for_the_disk_where_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sync: bool
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    atomic_write(tmp_path / "file", b"x", sync=sync)
    assert len(synced) == (2 if sync else 0)  # the file and its folder
    assert (tmp_path / "file").read_bytes() == b"x"


def test_an_atomic_write_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic_write(path, b"long old text")
    atomic_write(path, b"new", mode=0o600)
    assert path.read_bytes() == b"new"
    assert mode(path) == 0o600
    assert [path] == list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk") as disk:
        path = disk / "file"
        atomic_write(path, b"old")
        with pytest.raises(StorageError, match=r"No space left on device \(0 B free\)") as caught:
            atomic_write(path, bytes(8 << 20))
        assert "clean" in caught.value.hint
        assert path.read_bytes() == b"old"
        assert [path] == list(disk.iterdir())


def test_a_killed_writer_leaves_the_old_file_and_the_next_write_works(
    tmp_path: Path, holder: subprocess.Popen[bytes]
) -> None:
    path = tmp_path / "file"
    atomic_write(path, b"old")
    start(
        holder,
        "import reprobuild.host.home as h; "
        "h.write_all = lambda f, d: (f.write(d[:2]), print('ready', flush=True), input()); "
        f"h.atomic_write(Path({str(path)!r}), b'half')",
    )
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert path.read_bytes() == b"old"
    atomic_write(path, b"new")
    assert path.read_bytes() == b"new"
    assert [path] == list(tmp_path.iterdir())


def test_writers_at_once_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [bytes([65 + i]) * 100_000 for i in range(8)]
    threads = [threading.Thread(target=atomic_write, args=(path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in texts
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "text", "hint"),
    [
        (errno.ENOSPC, "free", "reprobuild clean"),
        (errno.EDQUOT, "free on the disk, but the quota is used up", "larger quota"),
        (errno.EACCES, "Permission denied", "REPROBUILD_HOME"),
        (errno.EROFS, "Read-only file system", "REPROBUILD_HOME"),
        (errno.EIO, "Input/output error", ""),
        (errno.EFBIG, "File too large", "FAT takes 4 GiB"),
        (errno.EXDEV, "Invalid cross-device link", "on one disk"),
        (errno.EBUSY, "busy", "check"),
        (errno.ENOSYS, "the file system has no locks", "Lustre"),
        (errno.ENOENT, "No such file", ""),
    ],
)
def test_what_the_disk_refuses_is_a_storage_error(tmp_path: Path, number: int, text: str, hint: str) -> None:
    with pytest.raises(StorageError) as caught, storage_errors(tmp_path):
        raise OSError(number, os.strerror(number))
    assert str(tmp_path) in caught.value.message
    assert text in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_program_that_found_the_disk_full_is_told_from_one_that_failed(tmp_path: Path, number: int) -> None:
    with pytest.raises(StorageError, match=os.strerror(number)), storage_errors(tmp_path):
        raise_if_full(f"tar: a: Cannot write: {os.strerror(number)}", tmp_path)
    raise_if_full("tar: a: Cannot open", tmp_path)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_what_the_machine_is_short_of_is_no_fault_of_the_disk(tmp_path: Path, number: int) -> None:
    with pytest.raises(HostError, match=re.escape(os.strerror(number))) as caught, storage_errors(tmp_path):
        raise OSError(number, os.strerror(number))
    assert caught.value.hint


def test_a_disk_that_can_hold_no_more_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = os.statvfs(tmp_path)
    full = os.statvfs_result((*found[:5], 1000, 0, 0, *found[8:10]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(StorageError, match="all 1000 inodes are used"), storage_errors(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_name_with_a_nul_is_that_of_no_file() -> None:
    with pytest.raises(OSError, match="not the name of a file"):
        open_regular(Path("a\0b"))


def test_what_is_not_the_disk_passes(tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError), storage_errors(tmp_path):
        raise ConnectionResetError(errno.ECONNRESET, "reset")


def test_free_bytes_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") > 0


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_960, "1.0 MB"),
        (2_900_000_000, "2.9 GB"),
        (10**13, "10000.0 GB"),
    ],
)
def test_sizes_are_read_by_people(size: int, text: str) -> None:
    assert text == size_text(size)


@pytest.mark.parametrize("size", [1, -1])
def test_a_read_that_fails_has_the_file_s_name(size: int) -> None:
    unmapped = Path("/proc/self/mem")  # at its start
    with open_regular(unmapped) as file, pytest.raises(OSError, match="/proc/self/mem"):
        file.read(size)
