from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reprobuild.host import namespaces
from reprobuild.host.workers import WorkEndedError, workers
from reprobuild.oci.file_tree import read_root
from reprobuild.oci.overlay_layer import sees_overlay_notes
from reprobuild.oci.tar_fields import LayerRefused
from support.engines import missing
from support.layer_archives import read

pytest_plugins = ["support.layer_archives"]


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


@pytest.mark.parametrize("note", ["redirect", "metacopy", "whiteout"])
def test_what_only_overlayfs_can_follow_is_refused(above: Path, note: str) -> None:
    os.setxattr(above / "emptied", f"trusted.overlay.{note}", b"/etc")
    with pytest.raises(LayerRefused, match=f"'emptied' .*{note}"):
        read(above)


def test_a_device_is_refused(above: Path) -> None:
    os.mknod(above / "sda", stat.S_IFBLK, os.makedev(8, 0))
    with pytest.raises(LayerRefused, match="'sda' is a device node"):
        read(above)


def test_who_is_not_shown_what_hides_files(above: Path, tmp_path: Path) -> None:
    """Root of a user namespace sees the folder without the attribute that empties it: it must not read it."""
    assert sees_overlay_notes(tmp_path)
    code = "import sys; from pathlib import Path; from reprobuild.oci.overlay_layer import sees_overlay_notes"
    code += "; sys.exit(sees_overlay_notes(Path(sys.argv[1])))"
    argv = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(argv, check=False).returncode == 0


def test_reading_ends_with_the_work_that_it_is_for(above: Path) -> None:
    """`check` of an image in Docker went on until the library that was being hashed had been read."""
    (above / "library.so").write_bytes(bytes(1 << 19))
    stop = threading.Event()
    with workers(1, stop=stop) as pool:
        stop.set()
        with pytest.raises(WorkEndedError):
            pool.submit(read, above).result()
