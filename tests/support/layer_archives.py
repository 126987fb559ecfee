"""Layers as overlayfs keeps them, one above another: fixtures.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from reprobuild.oci.file_tree import ImageTree, nothing, read_overlay
from reprobuild.oci.merge_layers import Keep
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
