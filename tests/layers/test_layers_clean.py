"""What `clean` takes, and what it must leave."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from pathlib import Path
from typing import IO

import pytest

from reprobuild.engines.embedded import OciEngine, unpacked
from reprobuild.errors import StorageError
from reprobuild.fetch.store import Store
from reprobuild.host import home as home_module
from reprobuild.host.console import Console
from reprobuild.host.home import Home, storage_errors
from reprobuild.host.host import Host
from reprobuild.layers.cache import LayerCache
from reprobuild.layers.clean import clean_home
from reprobuild.lock.model import Lock
from reprobuild.oci.blobs import Blobs
from support.building import lock_for, no_context, without_debian
from support.disk import fill, tiny_disk
from support.wheels import put, simple_wheel

CONSOLE = Console(quiet=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    without_debian(monkeypatch)
    return Home(tmp_path / "home")


def image(home: Home, package: str, *names: str) -> tuple[str, Lock]:
    """Build an image with a package of its own; return its digest and lock."""
    lock = lock_for(
        home, [put(home, "torch", simple_wheel("torch")), put(home, package, simple_wheel(package))]
    )
    engine = OciEngine(Host(home, CONSOLE))
    digest = engine.build(lock, no_context)
    for name in names:
        engine.images.name(digest, name)
    return digest, lock


def held(home: Home) -> set[str]:
    """The wheels in the store."""
    return set(Store(home).sizes())


def wheels(lock: Lock) -> set[str]:
    return {package.wheel.sha256 for package in lock.python}


def total(home: Home) -> int:
    """The bytes of all that the user may care for; empty files that serve as locks have none."""
    return sum(path.lstat().st_size for path in home.root.rglob("*") if path.is_file())


def test_what_a_named_image_needs_stays(home: Home) -> None:
    kept, lock = image(home, "one", "team/one:1")
    dropped, other = image(home, "two")
    images = OciEngine(Host(home, CONSOLE)).images
    with (
        unpacked(Host(home, CONSOLE), images, kept) as layers,
        unpacked(Host(home, CONSOLE), images, dropped) as more,
    ):
        folders = {*layers}, {*more}
    stray = put(home, "stray", simple_wheel("stray"))
    before = total(home)

    freed = clean_home(Host(home, CONSOLE), everything=False).total

    assert [found.digest for found in images.images()] == [kept]
    assert held(home) == wheels(lock)
    assert stray.wheel.sha256 not in held(home)
    assert not (wheels(other) - wheels(lock)) & held(home)
    assert {path.name for path in Blobs(home).folder.iterdir()} == {d[7:] for d in images.used_blobs()}
    assert {path for path in home.folder("roots").iterdir() if path.is_dir()} == folders[0]
    # The index of the images is written anew, shorter; it is no one's space.
    assert 0 <= before - total(home) - freed < 1000
    # All is there for the next build, which makes nothing.
    assert OciEngine(Host(home, CONSOLE)).build(lock, no_context) == kept
    assert clean_home(Host(home, CONSOLE), everything=False).total == 0


def test_what_cannot_be_removed_keeps_nothing_else(home: Home) -> None:
    """A folder stands for what is immutable, a mount point, or on a broken part of the disk."""
    image(home, "one")
    blob = min(Blobs(home).folder.iterdir())
    artifact = Store(home).path(min(held(home)))
    for path in (blob, artifact):
        path.unlink()
        path.mkdir()
    with pytest.raises(StorageError, match="and 1 more; all else was removed") as caught:
        clean_home(Host(home, CONSOLE), everything=True)
    assert str(blob) in caught.value.message
    assert [*Blobs(home).folder.iterdir()] == [blob]
    assert held(home) == {artifact.name}


def test_what_does_not_belong_there_keeps_nothing_else(home: Home) -> None:
    """As a restored backup, a synchronizer or a file manager leaves it."""
    image(home, "one")
    partial = home.folder("store") / "partial"
    partial.mkdir(exist_ok=True)
    strays = [
        partial / "link",
        partial / "folder",
        home.folder("layers") / "a.json",
        home.root / "built/b.json",
    ]
    home.folder("built")
    for stray in strays[1:]:
        stray.mkdir()
    strays[0].symlink_to("/nonexistent")
    (home.root / "layers" / "c.json").symlink_to("/nonexistent")
    (home.root / "oci/blobs/sha256/link").symlink_to("/nonexistent")
    with pytest.raises(StorageError, match=f"{strays[1]}.*, and 3 more; all else was removed") as caught:
        clean_home(Host(home, CONSOLE), everything=True)
    assert caught.value.hint.startswith(f"check {partial}, or")
    assert held(home) == set()
    assert [*Blobs(home).folder.iterdir()] == []
    assert sorted(path.name for path in home.folder("layers").iterdir()) == ["a.json"]


@pytest.mark.core
def test_an_unpacked_layer_that_cannot_be_removed_is_named(home: Home) -> None:
    """It is moved aside first, so the folder that is left is there only by another name."""
    image(home, "one")
    tmp = home.folder("tmp") / "unused.1" / "root"
    tmp.mkdir(parents=True)
    file = tmp / "file"
    file.touch()
    if subprocess.run(["chattr", "+i", str(file)], capture_output=True, check=False).returncode != 0:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no file can be made immutable here")
    try:
        with pytest.raises(StorageError, match=r"unused\.1.*: Operation not permitted.*all else was"):
            clean_home(Host(home, CONSOLE), everything=True)
        assert held(home) == set()
    finally:
        subprocess.run(["chattr", "-i", str(file)], check=True)
    clean_home(Host(home, CONSOLE), everything=True)
    assert [*home.folder("tmp").iterdir()] == []


def test_everything(home: Home) -> None:
    image(home, "one", "team/one:1", "team/one:2")
    image(home, "two")
    freed = clean_home(Host(home, CONSOLE), everything=True).total
    assert freed > 0
    assert OciEngine(Host(home, CONSOLE)).images.images() == []
    assert held(home) == set()
    for folder in (Blobs(home).folder, home.folder("roots"), home.folder("layers"), home.folder("tmp")):
        assert [*folder.iterdir()] == []
    digest, _ = image(home, "one", "team/one:1")
    assert OciEngine(Host(home, CONSOLE)).images.find("team/one:1").digest == digest


def test_an_image_in_use_keeps_its_folders_until_it_ends(home: Home) -> None:
    digest, _ = image(home, "one")
    images = OciEngine(Host(home, CONSOLE)).images
    with unpacked(Host(home, CONSOLE), images, digest) as layers:
        clean_home(Host(home, CONSOLE), everything=True)
        assert all(folder.is_dir() for folder in layers)
        assert (layers[0] / "usr/bin/sh").read_bytes() == b"shell"
    clean_home(Host(home, CONSOLE), everything=False)
    assert [*home.folder("roots").iterdir()] == []


def test_unfinished_downloads_go_but_not_those_that_go_on(home: Home) -> None:
    store = Store(home)
    for digit in "ab":
        with store.partial(digit * 64) as partial:
            assert partial is not None
            partial.file.write(b"half")
    with store.partial("a" * 64):
        assert clean_home(Host(home, CONSOLE), everything=False).total == len(b"half")
        assert (store.partial_size("a" * 64), store.partial_size("b" * 64)) == (4, 0)


def test_it_waits_for_the_builds_of_locks(home: Home) -> None:
    heard: list[str] = []

    class Told(Console):
        def step(self, text: str) -> None:
            heard.append(text)

    thread = threading.Thread(target=lambda: clean_home(Host(home, Told()), everything=False))
    with home.lock("sources", CONSOLE, shared=True), home.lock("sources", CONSOLE, shared=True):
        thread.start()
        while thread.is_alive() and not heard:
            thread.join(0.05)
        assert heard == [
            f"waiting for another reprobuild, which builds from source or cleans up in {home.root}"
        ]
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_without_the_lock_of_builds_from_source_it_removes_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But on a full disk, where it was passed over for every error."""
    (home.folder("store") / "x.partial").write_bytes(b"x")
    real = home_module.open_claimed

    def refused(path: Path, operation: int) -> IO[bytes] | None:
        if path.name == "sources":
            with storage_errors(path):
                raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), str(path))
        return real(path, operation)

    monkeypatch.setattr(home_module, "open_claimed", refused)
    with pytest.raises(StorageError, match="the file system has no locks"):
        clean_home(Host(home, CONSOLE), everything=True)
    assert (home.folder("store") / "x.partial").exists()


def test_it_waits_for_a_build(home: Home) -> None:
    done = threading.Event()

    def work() -> None:
        clean_home(Host(home, CONSOLE), everything=False)
        done.set()

    with home.lock("build", CONSOLE):
        digest, _ = image(home, "one")
        thread = threading.Thread(target=work)
        thread.start()
        assert not done.wait(0.3)
        # As a build does, before it lets go.
        OciEngine(Host(home, CONSOLE)).images.name(digest, "team/one:1")
    thread.join(timeout=30)
    assert done.is_set()
    assert OciEngine(Host(home, CONSOLE)).images.find("team/one:1").digest == digest


@pytest.mark.parametrize("index", [b"", b"rubbish", b'{"manifests": [{}]}'])
def test_a_damaged_store_can_be_emptied(home: Home, index: bytes) -> None:
    image(home, "one", "team/one:1")
    (home.root / "oci/index.json").write_bytes(index)
    clean_home(Host(home, CONSOLE), everything=True)
    image(home, "one", "team/one:1")
    assert len(OciEngine(Host(home, CONSOLE)).images.images()) == 1


def test_a_damaged_image_is_named_and_goes_and_the_others_stay(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, lock = image(home, "one", "team/one:1")
    bad, other = image(home, "two", "team/two:1")
    images = OciEngine(Host(home, CONSOLE)).images
    images.blob(bad).unlink()
    clean_home(Host(home, CONSOLE), everything=False)
    assert f"team/two:1 is removed: the image store is damaged: {bad}" in capsys.readouterr().err
    assert [found.digest for found in images.images()] == [kept]
    assert held(home) == wheels(lock)
    assert not (wheels(other) - wheels(lock)) & held(home)


def test_images_whose_names_are_lost_stay_with_all_that_they_need(home: Home) -> None:
    kept, lock = image(home, "one", "team/one:1")
    for name in ("index.json", "index.sealed"):
        (home.folder("oci") / name).write_bytes(b"")
    clean_home(Host(home, CONSOLE), everything=False)
    assert OciEngine(Host(home, CONSOLE)).build(lock, no_context) == kept
    assert held(home) == wheels(lock)


@pytest.mark.parametrize("scarce", ["bytes", "inodes"])
def test_a_full_disk_is_cleaned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scarce: str) -> None:
    """One whose space, inodes or quota are used up: it takes no new file and no new folder."""
    without_debian(monkeypatch)
    with tiny_disk(tmp_path / "full", 64 << 20) as disk:
        home = Home(disk / "home")
        digest, lock = image(home, "one", "team/one:1")
        with unpacked(Host(home, CONSOLE), OciEngine(Host(home, CONSOLE)).images, digest) as layers:
            assert all(layer.is_dir() for layer in layers)
        clean_home(Host(home, CONSOLE), everything=False)  # as `image`, it makes the lock
        image(home, "two")
        fill(disk, scarce)
        with pytest.raises(OSError, match="No space left"):
            (disk / "another").write_bytes(b"1")
        clean_home(Host(home, CONSOLE), everything=False)
        assert [found.digest for found in OciEngine(Host(home, CONSOLE)).images.images()] == [digest]
        assert held(home) == wheels(lock)
        fill(disk, scarce)
        assert clean_home(Host(home, CONSOLE), everything=False).total == 0
        assert clean_home(Host(home, CONSOLE), everything=True).unpacked > 0
        assert not any(path.is_dir() for path in home.folder("roots").iterdir())


@pytest.mark.parametrize("partial", [False, True])
def test_a_disk_that_a_first_download_filled_is_cleaned(tmp_path: Path, *, partial: bool) -> None:
    """Of the home there is what `image` makes before it, and no room for more."""
    with tiny_disk(tmp_path / "full", 1 << 20) as disk:
        home = Home(disk / "home")
        with home.lock("build", CONSOLE):
            LayerCache(home)
            home.sweep()
        if partial:
            with Store(home).partial("0" * 64) as download:
                assert download is not None
                download.file.write(bytes(4096))
        else:
            put(home, "torch", simple_wheel("torch"))
        fill(disk, "inodes")
        assert clean_home(Host(home, CONSOLE), everything=False).total > 0
