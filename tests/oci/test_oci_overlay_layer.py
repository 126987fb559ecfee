from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from reprobuild.host import namespaces
from reprobuild.oci.file_tree import ImageTree, nothing, read_overlay, read_root
from reprobuild.oci.merge_layers import Keep
from reprobuild.oci.overlay_layer import sees_overlay_notes
from reprobuild.oci.tar_fields import LayerRefused
from support.engines import missing


@pytest.fixture
def below(tmp_path: Path) -> Path:
    folder = tmp_path / "below"
    (folder / "etc").mkdir(parents=True)
    (folder / "etc/stays").write_text("it")
    (folder / "etc/goes").write_text("it")
    (folder / "emptied").mkdir()
    (folder / "emptied/goes").write_text("it")
    return folder


@pytest.fixture
def above(tmp_path: Path) -> Path:
    """A layer as overlayfs keeps it: a whiteout is a node, an opaque folder has an attribute."""
    if os.geteuid() != 0:
        missing("layers with whiteouts take root")
    folder = tmp_path / "above"
    (folder / "etc").mkdir(parents=True)
    os.mknod(folder / "etc/goes", stat.S_IFCHR, os.makedev(0, 0))
    (folder / "emptied").mkdir()
    (folder / "emptied/new").write_text("more")
    os.setxattr(folder / "emptied", "trusted.overlay.opaque", b"y")
    os.chown(folder / "emptied/new", 7, 8)
    os.setxattr(folder / "emptied/new", "user.note", b"kept")
    return folder


def read(*folders: Path, keep: Keep = nothing) -> ImageTree:
    return read_overlay(folders, {}, keep=keep)


def test_layers_are_read_as_a_container_sees_them(below: Path, above: Path) -> None:
    tree = read(below, above)
    assert tree.files.keys() == {"etc", "etc/stays", "emptied", "emptied/new"}
    new = tree.files["emptied/new"]
    assert (new.owner, new.attributes) == ("7:8", f"user.note={b'kept'.hex()}")
    assert not tree.files["emptied"].attributes
    assert not tree.unknown


def test_the_kernel_s_own_overlay_is_the_same(below: Path, above: Path, tmp_path: Path) -> None:
    """Its files, packed by tar, are those that are read without it: the digest is over all that counts."""
    (above / "twice").write_text("one")
    os.link(above / "twice", above / "second")
    (above / "f\udcff").symlink_to("x")
    os.mkfifo(above / "fifo", 0o640)
    (above / "setuid").touch()
    (above / "setuid").chmod(0o4755)
    (below / "fifo").mkdir()
    (below / "fifo/below").touch()
    (below / "setuid").symlink_to("etc")
    (tmp_path / "root").mkdir()
    mount = 'mount -t overlay -o "ro,lowerdir=$1:$2" overlay "$3" && exec tar --xattrs -C "$3" -cf "$4" .'
    argv = [*namespaces.prefix(), "sh", "-c", mount, "sh", *map(str, (above, below, tmp_path / "root"))]
    done = subprocess.run([*argv, str(tmp_path / "tar")], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        missing(f"overlayfs cannot be mounted here: {done.stderr}")
    with (tmp_path / "tar").open("rb") as tar:
        mounted = read_root(tar, "it", {})
    found = read(below, above)
    assert found.files == mounted.files
    assert {"twice", "second", "f\udcff", "fifo", "setuid"} <= found.files.keys()


def test_contents_that_are_wanted(below: Path, above: Path) -> None:
    tree = read(below, above, keep=lambda path, size: path == "emptied/new" and size == 4)
    assert tree.kept == {"emptied/new": b"more"}


@pytest.mark.parametrize("note", ["redirect", "metacopy", "whiteout"])
def test_what_only_overlayfs_can_follow_is_refused(above: Path, note: str) -> None:
    os.setxattr(above / "emptied", f"trusted.overlay.{note}", b"/etc")
    with pytest.raises(LayerRefused, match=f"'emptied' .*{note}"):
        read(above)


def test_a_device_is_refused(above: Path) -> None:
    os.mknod(above / "sda", stat.S_IFBLK, os.makedev(8, 0))
    with pytest.raises(LayerRefused, match="'sda' is a device node"):
        read(above)


def test_a_file_that_claims_any_size_is_refused(above: Path) -> None:
    with (above / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(LayerRefused, match="longer than"):
        read(above)


def test_a_layer_that_is_gone_is_an_error(above: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none", above)


def test_who_is_not_shown_what_hides_files(above: Path, tmp_path: Path) -> None:
    """Root of a user namespace sees the folder without the attribute that empties it: it must not read it."""
    assert sees_overlay_notes(tmp_path)
    code = "import sys; from pathlib import Path; from reprobuild.oci.overlay_layer import sees_overlay_notes"
    code += "; sys.exit(sees_overlay_notes(Path(sys.argv[1])))"
    argv = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(argv, check=False).returncode == 0
