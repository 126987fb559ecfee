"""A squashfs file in enroot's layout: the image's files, the same bytes each time, whole or not there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import ImageError, StorageError
from reprobuild.host import process
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.documents import sha256
from reprobuild.oci.file_tree import read_overlay
from reprobuild.oci.squashfs import enroot_files, export_squashfs
from reprobuild.oci.store import ImageStore
from reprobuild.oci.tar_fields import LayerRefused
from support.disk import tiny_disk
from support.engines import needs_root
from support.flat_archives import ABOVE, BELOW, blobs, flat
from support.small_root import small_image

CONSOLE = Console(quiet=True)


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(Host(Home(tmp_path / "home"), CONSOLE))


def test_files_that_count_for_more(tmp_path: Path) -> None:
    instead = {"etc/stays": (0o600, b"mine"), "new/one": (0o755, b"")}
    found = flat(blobs(tmp_path, BELOW, ABOVE), instead)
    assert (found.files["etc/stays"].mode, found.files["etc/stays"].content) == (0o600, sha256(b"mine")[7:])
    assert found.files["new"].kind == "dir"
    for path, why in (("etc", "is a folder"), ("first/one", "is not a folder")):
        with pytest.raises(LayerRefused, match=why):
            flat(blobs(tmp_path, BELOW, ABOVE), {path: (0o644, b"")})


def test_enroot_s_files() -> None:
    found = enroot_files({"Cmd": ["python3", "-c", "a b"], "Env": ["A=1", "B=x y"], "WorkingDir": "/it is"})
    assert found["etc/environment"] == (0o644, b"A=1\nB=x y\n")
    assert found["etc/fstab"] == (0o644, b"")
    mode, rc = found["etc/rc"]
    assert mode == 0o755
    assert rc.startswith(b"mkdir -p '/it is' 2> /dev/null\ncd '/it is' &&")
    assert b"    exec python3 -c 'a b'\n" in rc


@pytest.mark.parametrize(("argv", "said"), [((), "none\n"), (("printf", "%s.", "a b", "c"), "a b.c.")])
def test_its_rc_starts_what_it_is_given(tmp_path: Path, argv: tuple[str, ...], said: str) -> None:
    config = {"Cmd": ["echo", "none"], "Env": [], "WorkingDir": str(tmp_path / "work")}
    (tmp_path / "rc").write_bytes(enroot_files(config)["etc/rc"][1])
    done = subprocess.run(["sh", str(tmp_path / "rc"), *argv], capture_output=True, text=True, check=True)
    assert done.stdout == said
    assert (tmp_path / "work").is_dir()


# --- with squashfs-tools ---


@pytest.fixture
def digest(tmp_path: Path) -> str:
    return small_image(Home(tmp_path / "home"))


@pytest.fixture
def squashfs(store: ImageStore, digest: str, tmp_path: Path) -> Iterator[Path]:
    needs("mksquashfs")
    file = tmp_path / "small.sqsh"
    export_squashfs(store, store.find(digest), file)
    yield file
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".partial"} == set()


@pytest.mark.engines
def test_it_has_the_image_s_files(store: ImageStore, digest: str, squashfs: Path, tmp_path: Path) -> None:
    needs_root()
    process.run(["unsquashfs", "-no-progress", "-dest", str(tmp_path / "root"), str(squashfs)])
    found = read_overlay([tmp_path / "root"], {}).files
    wanted = store.tree(digest, "it", lambda *_: False).files
    own = {f"etc/{name}" for name in ("rc", "fstab", "environment")}
    assert own <= found.keys()
    assert {path: found[path] for path in found if path not in own} == wanted
    argv = ["chroot", str(tmp_path / "root"), "sh", "/etc/rc"]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b"above\n"


@pytest.mark.engines
def test_twice_the_same_bytes(squashfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another home, on one processor, at another hour, and over what a killed one left."""
    home = Home(tmp_path / "other")
    (tmp_path / ".again.sqsh.partial").write_bytes(squashfs.read_bytes() * 2)
    os.utime(squashfs, (0, 0))
    store = ImageStore(Host(home, CONSOLE))
    mine = os.sched_getaffinity(0)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    try:
        os.sched_setaffinity(0, {min(mine)})
        export_squashfs(store, store.find(small_image(home)), tmp_path / "again.sqsh")
    finally:
        os.sched_setaffinity(0, mine)
    assert squashfs.read_bytes() == (tmp_path / "again.sqsh").read_bytes()


@pytest.mark.engines
def test_whole_or_not_there(store: ImageStore, digest: str, tmp_path: Path) -> None:
    needs("mksquashfs")
    needs_root()
    with tiny_disk(tmp_path / "tiny", 1 << 20) as small:
        with pytest.raises(StorageError, match="No space left on device"):
            export_squashfs(store, store.find(digest), small / "a.sqsh")
        assert [*small.iterdir()] == []
    blob, _ = store.layers(digest)[-1]
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-9])
    file = tmp_path / "a.sqsh"
    file.write_text("older")
    with pytest.raises(ImageError, match="the image store is damaged"):
        export_squashfs(store, store.find(digest), file)
    assert file.read_text() == "older"
    assert not [*tmp_path.glob(".*")]
