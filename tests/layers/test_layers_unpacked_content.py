"""What a disk changed in an unpacked layer, leaving size and time as they were, is found by content."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers import unpacked_content
from reprobuild.layers.cache import LayerCache
from reprobuild.layers.unpacked_content import distrust_changed
from reprobuild.layers.unpacked_layers import unpack
from reprobuild.oci.file_tree import nothing, read_layers
from reprobuild.oci.tar_writer import Layer, Record
from support.disk import rot
from support.small_root import layer_of

LOWER: dict[str, bytes | str] = {"a/same": b"same", "a/covered": b"lower", "a/big": bytes(300_000), "b": "a"}
UPPER: dict[str, bytes | str] = {"a/covered": b"upper", "opt/.wh..wh..opq": b""}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(Home(tmp_path / "home"), Console(quiet=True))


@pytest.fixture
def layers(host: Host) -> list[Layer]:
    return [layer_of(host.home, LOWER), layer_of(host.home, UPPER)]


def folders_of(host: Host, layers: list[Layer]) -> list[Path]:
    return [unpack(host, LayerCache(host.home).blob(y.digest), y.diff_id, lambda _: None) for y in layers]


def files_of(host: Host, layers: list[Layer]) -> dict[str, Record]:
    return dict(read_layers([LayerCache(host.home).blob(y.digest) for y in layers], nothing).files)


@pytest.mark.parametrize("path", ["a/same", "a/big", "b", "a/covered"])
def test_a_changed_file_is_named_and_its_layer_unpacked_again(
    host: Host, layers: list[Layer], capsys: pytest.CaptureFixture[str], path: str
) -> None:
    folders, files = folders_of(host, layers), files_of(host, layers)
    assert not distrust_changed(host, folders, files)
    changed = folders[1 if path == "a/covered" else 0]
    before = (changed / path).readlink() if path == "b" else (changed / path).read_bytes()
    rot(changed / path)
    assert folders_of(host, layers) == folders
    assert capsys.readouterr().err == ""  # sizes and times do not tell
    assert distrust_changed(host, folders, files)
    assert f"{changed}/{path}: its bytes are not those of the image" in capsys.readouterr().err
    folders_of(host, layers)
    assert f"{changed}: files of this unpacked layer do not match the image: it is" in capsys.readouterr().err
    assert not distrust_changed(host, folders, files)
    assert ((changed / path).readlink() if path == "b" else (changed / path).read_bytes()) == before


def test_a_file_that_another_layer_covers_is_not_read(host: Host, layers: list[Layer]) -> None:
    folders, files = folders_of(host, layers), files_of(host, layers)
    rot(folders[0] / "a/covered")
    assert not distrust_changed(host, folders, files)


def test_what_the_disk_does_not_give_is_named(
    host: Host, layers: list[Layer], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, files = folders_of(host, layers), files_of(host, layers)

    def lost(_: object) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as context:
        context.setattr(unpacked_content, "sha256_of", lost)
        assert distrust_changed(host, folders, files)
    assert "Input/output error" in capsys.readouterr().err
