from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import ImageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.file_tree import ImageTree
from reprobuild.verify.find import parent_manifest
from support.images import PACK, Entry, layer, layout

LABELS = {"dev.reprobuild.lock": "sha256:0", "dev.reprobuild.version": "1"}
MANIFEST = "opt/reprobuild/manifest.tsv"


def found(tmp_path: Path, *entries: Entry | str) -> bytes | None:
    """The manifest of the image in the embedded store that a derived one starts from; it can run nothing."""
    layers = [PACK["zstd"](layer("bin/")), PACK["zstd"](layer(*entries))]
    layout(tmp_path / "home/oci", {"team/x:1": (layers, {"Labels": LABELS})})
    host = Host(Home(tmp_path / "home"), Console(quiet=True))
    return parent_manifest(ImageTree({}, {"Labels": LABELS}), None, host)


def test_the_parent_s_manifest_is_read_and_nothing_of_it_run(tmp_path: Path) -> None:
    assert found(tmp_path, Entry(path=MANIFEST, content=b"1")) == b"1"
    assert not (tmp_path / "home/roots").exists()


def test_a_parent_without_one(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"has no /opt/reprobuild/manifest\.tsv"):
        found(tmp_path, "opt/")
