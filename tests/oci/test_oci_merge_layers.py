"""Layers merged as a container sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import ImageError
from reprobuild.oci.file_tree import read_layers
from reprobuild.oci.tar_fields import LayerRefused
from support.layer_archives import read
from support.odd_layers import NAMED

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


def blobs(folder: Path, name: str) -> list[Path]:
    paths = [folder / str(number) for number in range(len(NAMED[name]))]
    for path, data in zip(paths, NAMED[name], strict=True):
        path.write_bytes(data)
    return paths


@pytest.mark.parametrize("name", [each for each in NAMED if each.startswith("a folder that only ")])
def test_a_folder_that_a_layer_only_implies_is_there(name: str, tmp_path: Path) -> None:
    """Whoever unpacks a whiteout makes the folders above it."""
    found = read_layers(blobs(tmp_path, name), lambda _path, _size: False).files
    assert (found["a"].kind, found["a"].owner) == ("dir", "0:0")


@pytest.mark.parametrize(
    "name", [each for each in NAMED if each.endswith(" below") and " in a folder" in each]
)
def test_a_folder_that_a_layer_implies_over_one_of_other_rights_is_refused(name: str, tmp_path: Path) -> None:
    """Docker with overlay2 and Podman show a new folder (0755, root's), containerd keeps the rights."""
    with pytest.raises(ImageError, match="'a' has files in a layer that does not name it"):
        read_layers(blobs(tmp_path, name), lambda _path, _size: False)


@pytest.mark.parametrize("name", [each for each in NAMED if each.startswith("a whiteout after a ")])
def test_a_layer_that_removes_what_it_has_made_is_refused(name: str, tmp_path: Path) -> None:
    """Docker 20.10 and Podman refuse it, containerd removes the file, the specification keeps it."""
    with pytest.raises(ImageError, match="is made and then removed in one layer"):
        read_layers(blobs(tmp_path, name), lambda _path, _size: False)
