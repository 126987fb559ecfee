"""What is passed is given back to the machine, and no byte of a file depends on it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import subprocess
import time
from pathlib import Path

import pytest

from reprobuild.host import page_cache
from reprobuild.host.home import write_all
from reprobuild.host.page_cache import PageCache, Passed, PassingFile

STEP = 1 << 20

Call = tuple[int, int]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_STEP", STEP)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    calls: list[Call] = []

    def fadvise(descriptor: int, start: int, size: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        calls.append((start, size))

    monkeypatch.setattr(os, "posix_fadvise", fadvise)
    return calls


def resident(path: Path) -> int:
    """Return how many bytes of a file are in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    size = path.stat().st_size
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        pages = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
        start = (ctypes.c_char * size).from_buffer(mapped)
        assert libc.mincore(ctypes.byref(start), ctypes.c_size_t(size), pages) == 0
        del start
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


def test_what_is_on_the_disk_leaves_the_memory(tmp_path: Path) -> None:
    kind = subprocess.check_output(["stat", "--file-system", "--format=%T", tmp_path], text=True).strip()
    if kind in ("tmpfs", "ramfs"):
        pytest.skip(f"{tmp_path} is in memory itself ({kind})")
    path = tmp_path / "file"
    path.write_bytes(os.urandom(4 * STEP))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        assert resident(path) == 4 * STEP
        Passed(PageCache(), file.fileno()).add(0, 4 * STEP)
        assert resident(path) == 0


def test_a_range_is_given_back_again_since_it_may_not_have_been_on_the_disk(asked: list[Call]) -> None:
    passed = Passed(PageCache(), 0)
    for start in range(0, 4 * STEP, STEP // 2):
        passed.add(start, STEP // 2)
    halves = [(start, STEP // 2) for start in range(0, 4 * STEP, STEP // 2)]
    assert asked == halves[:2] + halves[:4] + halves[2:6] + halves[4:8]


def test_what_is_read_soon_stays(asked: list[Call]) -> None:
    Passed(PageCache(keeps=True), 0).add(0, 10 * STEP)
    assert asked == []


def test_a_slow_disk_is_left_alone(asked: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))  # each call takes a second
    cache = PageCache()
    for _ in range(5):
        Passed(cache, 0).add(0, STEP)
    assert len(asked) == page_cache._MOST_WAITED


def test_a_file_system_that_cannot_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def fadvise(descriptor: int, *given: int) -> None:
        calls.append(descriptor)
        raise OSError(errno.EINVAL, "no such thing")

    monkeypatch.setattr(os, "posix_fadvise", fadvise)
    cache = PageCache()
    for descriptor in (1, 2):
        Passed(cache, descriptor).add(0, STEP)
    assert calls == [1]


def test_the_bytes_of_a_file_are_those_written(tmp_path: Path) -> None:
    content = os.urandom(5 * STEP + 17)
    with PassingFile(tmp_path / "file", PageCache()) as file:
        for start in range(0, len(content), 300_001):
            write_all(file, memoryview(content)[start : start + 300_001])
    assert (tmp_path / "file").read_bytes() == content


def test_a_full_disk_raises_as_with_any_file() -> None:
    with PassingFile(Path("/dev/full"), PageCache()) as file, pytest.raises(OSError) as raised:  # noqa: PT011
        file.write(b"x")
    assert raised.value.errno == errno.ENOSPC
