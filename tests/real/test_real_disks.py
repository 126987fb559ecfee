"""Disks that fail for real, with a used-up quota or a stop of all writes, clocks that jump, and many images.

The homes are small, and are built in the process of the test. The kernel gives the errors: btrfs has quotas,
ext4 is read-only after an error of its own.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from reprobuild.engines.embedded import OciEngine, unpacked
from reprobuild.engines.protocols import RunOptions
from reprobuild.errors import StorageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers import system
from reprobuild.layers.clean import clean_home
from reprobuild.lock.model import Lock
from reprobuild.oci.store import ImageStore
from support.building import lock_for, no_context, without_debian
from support.disk import loop_disk
from support.small_root import small_image
from support.wheels import put, simple_wheel, wheel_bytes

pytestmark = pytest.mark.slow

NAMES = ("team/one:1", "team/two:1")


class SmallHome:
    """A home for images of a few files each."""

    def __init__(self, root: Path) -> None:
        self.host = Host(Home(root), Console(quiet=True))
        self.store = ImageStore(self.host)

    def build(self, *names: str, size: int = 0) -> dict[str, str]:
        """Build images, each with a package of its own, and name them; return their digests by name."""
        made = {}
        for name in names:
            made[name] = OciEngine(self.host).build(self.lock(name, size), no_context)
            self.store.name(made[name], name)
        return made

    def lock(self, name: str, size: int = 0) -> Lock:
        package = re.sub(r"[^a-z0-9]", "", name)
        files = {f"{package}.bin": random.Random(name).randbytes(size), f"{package}.py": b"VALUE = 1\n"}
        wheels = [("torch", simple_wheel("torch")), (package, wheel_bytes(package, "1", {**files}))]
        return lock_for(self.host.home, [put(self.host.home, *wheel) for wheel in wheels])

    def names(self) -> list[str]:
        return sorted(name for image in self.store.images() for name in image.names)

    def contents(self, name: str) -> list[bytes]:
        """Return all files of an image, as a run would see them."""
        with unpacked(self.host, self.store, self.store.find(name).digest) as folders:
            files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
            return [path.read_bytes() for path in files]

    def clean(self) -> None:
        clean_home(self.host, everything=False)


@pytest.fixture(autouse=True)
def _without_debian(monkeypatch: pytest.MonkeyPatch) -> None:
    without_debian(monkeypatch)


@pytest.fixture
def right(tmp_path: Path) -> dict[str, str]:
    """The digests on a disk without faults."""
    return SmallHome(tmp_path / "good").build(*NAMES)


def test_a_used_up_quota(tmp_path: Path) -> None:
    right = SmallHome(tmp_path / "good").build(*NAMES, size=8 << 20)
    with loop_disk(tmp_path, "btrfs") as disk:
        disk.run("btrfs", "quota", "enable", disk.mounted)
        home = SmallHome(disk.mounted / "home")
        home.build(NAMES[0], size=8 << 20)
        home.clean()  # as `image`, it makes the lock
        home.lock(NAMES[1], 8 << 20)
        subprocess.run(["sync", "-f", str(disk.mounted)], check=True)
        show = ["btrfs", "qgroup", "show", "--raw", str(disk.mounted)]
        used = subprocess.run(show, capture_output=True, text=True, check=True).stdout.split()[-2]
        disk.run("btrfs", "qgroup", "limit", str(int(used) + (2 << 20)), disk.mounted)
        with pytest.raises(StorageError, match="but the quota is used up") as caught:
            home.build(NAMES[1], size=8 << 20)
        assert "a larger quota" in caught.value.hint
        assert home.names() == [NAMES[0]]
        home.clean()
        assert home.names() == [NAMES[0]]
        disk.run("btrfs", "qgroup", "limit", "none", disk.mounted)
        assert home.build(*NAMES, size=8 << 20) == right


def test_a_disk_that_turns_read_only_in_the_middle_of_a_build(
    tmp_path: Path, right: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ext4 does after an error of the disk below it."""
    with loop_disk(tmp_path, "ext4") as disk:
        home = SmallHome(disk.mounted / "home")
        home.build(NAMES[0])
        clean_home(home.host, everything=True)
        honest = getattr(system, "write_debian")  # noqa: B009 -- mypy

        def write(*arguments: Any) -> None:
            disk.run("mount", "-o", "remount,abort", disk.mounted)
            honest(*arguments)

        with monkeypatch.context() as inner:
            inner.setattr(system, "write_debian", write)
            with pytest.raises(StorageError, match=r"Read-only file system|Input/output error") as caught:
                home.build(*NAMES)
        assert str(disk.mounted) in caught.value.message
        with pytest.raises(StorageError, match="Read-only file system"):
            home.clean()
        disk.unmount()
        # Another mount namespace may have a copy of the mount, which keeps this file system as it is.
        disk.file = Path(shutil.copy(disk.file, tmp_path / "copy"))
        subprocess.run(["e2fsck", "-fy", str(disk.file)], capture_output=True, check=False)
        disk.mount()
        assert home.build(*NAMES) == right
        assert [*home.host.home.folder("tmp").iterdir()] == []


@pytest.mark.parametrize("how", ["run", "selftest", "twice"])
def test_a_file_of_an_unpacked_layer_that_the_disk_lost(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], how: str
) -> None:
    """A program fails on it; the next run has the file again, without help."""
    with loop_disk(tmp_path, "btrfs") as disk:
        home = SmallHome(disk.mounted / "home")
        big = random.Random(1).randbytes(1 << 20).hex().encode()  # other bytes in the compressed layer
        digest = small_image(home.host.home, big=big)
        engine = OciEngine(home.host)

        def run() -> int | None:
            argv = ["sh", "-c", "cat /big > /dev/null"]
            match how:
                case "run":
                    return engine.run(digest, argv, RunOptions())
                case "selftest":
                    return engine.runner(digest).run(argv, timeout=60, gpu=False).returncode
                case _:
                    with home.host.home.scratch("twice") as folder:
                        return engine.recorded(digest, argv, RunOptions())(folder, {}, 60).status

        assert run() == 0
        (file,) = home.host.home.root.glob("roots/*/big")
        disk.lose(file)
        capfd.readouterr()
        assert run() == 1
        assert f"{file}: Input/output error: the next run unpacks this layer again" in capfd.readouterr().err
        assert run() == 0
        assert run() == 0
        home.clean()
        assert [*home.host.home.folder("tmp").iterdir()] == []


@pytest.mark.parametrize("days", [-4000, -1, 30])
def test_a_clock_that_jumps(
    tmp_path: Path, right: dict[str, str], monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """In the middle of a build, and between two: files that were used last come from the future then."""
    home = SmallHome(tmp_path / "home")
    home.build(NAMES[0])
    contents = home.contents(NAMES[0])
    real, honest = time.time, getattr(system, "write_debian")  # noqa: B009 -- mypy

    def write(*arguments: Any) -> None:
        monkeypatch.setattr(time, "time", lambda: real() + days * 86400)
        honest(*arguments)

    clean_home(home.host, everything=True)
    monkeypatch.setattr(system, "write_debian", write)
    assert home.build(*NAMES) == right
    assert home.contents(NAMES[0]) == contents
    home.clean()
    assert home.build(*NAMES) == right
    assert home.names() == [*NAMES]


def test_sixty_images(tmp_path: Path) -> None:
    """What they share stays until the last one goes; what only removed ones had goes."""
    home = SmallHome(tmp_path / "home")
    names = [f"team/image{number}:1" for number in range(60)]
    made = home.build(*names)
    assert len({*made.values()}) == len(names)
    home.clean()
    assert home.names() == sorted(names)
    for name in names[1::2]:
        home.store.remove(name)
    home.clean()
    assert home.names() == sorted(names[::2])
    blobs = {path.name for path in (home.host.home.root / "oci/blobs/sha256").iterdir()}
    assert {f"sha256:{name}" for name in blobs} == home.store.used_blobs()
    assert home.build(*names) == made
    for name in names:
        home.store.remove(name)
    home.clean()
    assert home.names() == []
