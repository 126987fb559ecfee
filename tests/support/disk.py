"""A disk that is soon full, and a file that it cannot read."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import pytest


def _give_up(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def tiny_disk(folder: Path, size: int = 6 << 20) -> Iterator[Path]:
    """Mount a tmpfs of so many bytes; skip the test where that is not allowed, and fail it in CI."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode != 0:
        _give_up(f"a tmpfs cannot be mounted here: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def overlaid(folder: Path, lower: Path) -> Iterator[Path]:
    """Mount overlayfs over a folder, as in a container; skip or fail the test as `tiny_disk`."""
    names = [folder / name for name in ("upper", "work", "seen")]
    for name in names:
        name.mkdir()
    options = f"lowerdir={lower},upperdir={names[0]},workdir={names[1]}"
    done = subprocess.run(
        ["mount", "-t", "overlay", "-o", options, "overlay", str(names[2])],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        _give_up(f"overlayfs cannot be mounted here: {done.stderr.strip()}")
    try:
        yield names[2]
    finally:
        subprocess.run(["umount", "-l", str(names[2])], check=True)


class LoopDisk:
    """A file system in a file, for faults that a tmpfs does not have."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind, self.file, self.mounted = kind, folder / "disk.img", folder / "disk"
        self.mounted.mkdir()
        with self.file.open("wb") as file:
            file.truncate(256 << 20)
        options = ("-m", "single", "-d", "single") if kind == "btrfs" else ("-F",)
        self.run(f"mkfs.{kind}", "-q", *options, self.file)
        self.mount()

    def run(self, *argv: str | Path) -> None:
        """Run a program on it; skip the test where that is not possible, and fail it in CI."""
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            _give_up(f"{argv[0]} is not installed")
        if done.returncode != 0:
            _give_up(f"not possible here: {argv}: {done.stderr.strip()}")

    def mount(self) -> None:
        """Give its files to the tests."""
        self.run("mount", "-o", "loop", self.file, self.mounted)

    def lose(self, file: Path) -> None:
        """Change a file's bytes below btrfs, which finds that by its checksums and does not give them."""
        piece, at, count = file.read_bytes()[8192:8256], 0, 0
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            with self.file.open("r+b") as disk, mmap.mmap(disk.fileno(), 0) as found:
                while (at := found.find(piece, at)) >= 0:
                    found[at] ^= 1
                    count += 1
                found.flush()
            # Another mount namespace may have a copy of the mount, so unmounting would not forget it.
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert count, f"{file} is not on the disk as it is"

    def unmount(self) -> None:
        """Write everything to the file, and leave it."""
        subprocess.run(["umount", str(self.mounted)], check=True)


@contextmanager
def loop_disk(folder: Path, kind: str) -> Iterator[LoopDisk]:
    """Make and mount a file system of 256 MiB; skip the test where that is not possible."""
    disk = None
    try:
        disk = LoopDisk(folder, kind)
        yield disk
    finally:
        if disk is not None:
            subprocess.run(["umount", "-l", str(disk.mounted)], check=False, capture_output=True)


def fill(disk: Path, scarce: str) -> None:
    """Use up the ``bytes`` or the ``inodes`` of a `tiny_disk`."""
    if scarce == "inodes":
        used = os.statvfs(disk)
        size = used.f_files - used.f_ffree
        subprocess.run(["mount", "-o", f"remount,nr_inodes={size}", str(disk)], check=True)
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def make_unreadable(file: Path, monkeypatch: pytest.MonkeyPatch, size: int = 512) -> None:
    """Replace a file by one of a size whose reading fails with EIO, as on a disk that is worn out."""
    file.unlink()
    file.symlink_to("/proc/self/mem")  # nothing is mapped at its start
    real = Path.stat
    told = os.stat_result((0o100444, 0, 0, 1, 0, 0, size, 0, 0, 0))  # it has no size of its own
    monkeypatch.setattr(Path, "stat", lambda path, **how: told if path == file else real(path, **how))


def remove_folder(folder: Path) -> None:
    """Remove a folder of a test, but never through a mount: that would empty what is the host's."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    left = [mount for mount in mounts if Path(mount).is_relative_to(folder)]
    assert not left, f"still mounted, so {folder} is left as it is: {left}"
    # Roots hold folders that their owner may not read.
    subprocess.run(["chmod", "-R", "u+rwX", folder], check=False, capture_output=True)
    shutil.rmtree(folder)


def rot(path: Path) -> None:
    """Change the content of a file, or the target of a link, as a disk does: sizes and times stay."""
    kept = [(each, each.lstat()) for each in (path, path.parent)]
    if path.is_symlink():
        target = str(path.readlink())
        path.unlink()
        path.symlink_to(chr(ord(target[0]) ^ 2) + target[1:])
    else:
        data = path.read_bytes()
        with path.open("r+b") as file:
            file.write(bytes([data[0] ^ 1]))
    for each, status in kept:
        os.utime(each, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
