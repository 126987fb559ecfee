"""The unpacked copy that is written beside a layer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers import unpacked_layers
from reprobuild.layers import wheel_layer as wheel_layer_module
from reprobuild.layers.cache import LayerCache
from support.building import without_debian
from support.fixtures import fixtures_of
from support.scheduled import LARGE, build, toys

globals().update(fixtures_of("support.scheduled"))


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(wheel_layer_module, "LARGE", LARGE)
    return without_debian(monkeypatch)


def tree(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        owner = (status.st_uid, status.st_gid)
        found[str(path.relative_to(folder))] = (status.st_mode, owner, status.st_mtime_ns, content)
    return found


def test_what_is_laid_out_is_what_unpacking_makes(home: Home, tmp_path: Path) -> None:
    """In all that can be seen of a file; and the roots then have it, so that nothing is unpacked again."""
    umask = os.umask(0o077)
    try:
        layers = build(toys(home), home, lay_out=True)
    finally:
        os.umask(umask)
    wheels = layers[2:-1]
    laid = {y.title: home.folder("roots") / y.cached.layer.diff_id[7:] for y in wheels}
    assert all(folder.is_dir() for folder in laid.values())
    assert len(wheels) == 7
    other = Host(Home(tmp_path / "other"), Console(quiet=True))
    for layer in wheels:
        blob, diff_id = LayerCache(home).blob(layer.cached.layer.digest), layer.cached.layer.diff_id
        unpacked = unpacked_layers.unpack(other, blob, diff_id, lambda _: None)
        assert tree(laid[layer.title]) == tree(unpacked)
        assert laid[layer.title].stat().st_mode == unpacked.stat().st_mode
    sizes = [unpacked_layers.unpacked_sizes(each) for each in (home, other.home)]
    assert {d: sizes[0][d] for d in sizes[1]} == sizes[1]
