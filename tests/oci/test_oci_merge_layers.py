"""Layers merged as a container sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.oci.tar_fields import LayerRefused
from support.layer_archives import read

pytest_plugins = ["support.layer_archives"]


def test_layers_are_read_as_a_container_sees_them(below: Path, above: Path) -> None:
    tree = read(below, above)
    assert tree.files.keys() == {"etc", "etc/stays", "emptied", "emptied/new"}
    new = tree.files["emptied/new"]
    assert (new.owner, new.attributes) == ("7:8", f"user.note={b'kept'.hex()}")
    assert not tree.files["emptied"].attributes
    assert not tree.unknown


def test_contents_that_are_wanted(below: Path, above: Path) -> None:
    tree = read(below, above, keep=lambda path, size: path == "emptied/new" and size == 4)
    assert tree.kept == {"emptied/new": b"more"}


def test_a_file_that_claims_any_size_is_refused(above: Path) -> None:
    with (above / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(LayerRefused, match="longer than"):
        read(above)


def test_a_layer_that_is_gone_is_an_error(above: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none", above)
