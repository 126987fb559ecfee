from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from reprobuild.engines.docker_client import layers_on_disk
from reprobuild.engines.root_tar import stacked
from reprobuild.host.process import ProcessFailed
from reprobuild.oci.file_tree import read_root
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


def test_layers_are_read_as_a_container_sees_them(below: Path, above: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with stacked([below, above], tmp_path / "work") as tar:
        tree = read_root(tar, "it", {})
    assert tree.files.keys() == {"etc", "etc/stays", "emptied", "emptied/new"}
    new = tree.files["emptied/new"]
    assert (new.owner, new.attributes) == ("7:8", f"user.note={b'kept'.hex()}")
    assert not tree.unknown


def test_a_single_layer_and_one_of_a_hundred(below: Path, above: Path, tmp_path: Path) -> None:
    many = []
    for number in range(100):
        many.append(tmp_path / f"{number:064d}")
        many[-1].mkdir()
        (many[-1] / f"f{number}").touch()
    for name, layers, files in [("one", [below], 5), ("many", many, 100)]:
        (tmp_path / name).mkdir()
        with stacked(layers, tmp_path / name) as tar:
            assert len(read_root(tar, "it", {}).files) == files


def test_a_layer_that_is_gone_is_an_error(above: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with (
        pytest.raises(ProcessFailed, match="mount"),
        stacked([tmp_path / "none", above], tmp_path / "work") as tar,
    ):
        assert tar.read() == b""


def image(*folders: Path, **other: object) -> dict[str, object]:
    """What Docker says of an image: the uppermost layer for itself."""
    upper, *lower = map(str, reversed(folders))
    data = {"UpperDir": upper, **({"LowerDir": ":".join(lower)} if lower else {})}
    return {"GraphDriver": {"Name": "overlay2", "Data": data} | other}


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/docker.sock")
    monkeypatch.setattr(os, "geteuid", lambda: 0)


PLAIN = {"SecurityOptions": ["name=seccomp,profile=default"]}


@pytest.mark.usefixtures("local")
def test_the_layers_of_a_docker_on_this_machine(tmp_path: Path) -> None:
    a, b, c = (tmp_path / each for each in "abc")
    for each in (a, b, c):
        each.mkdir()
    assert layers_on_disk(PLAIN, image(a, b, c)) == [a, b, c]
    assert layers_on_disk({"SecurityOptions": None}, image(a)) == [a]


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("why", ["rootless", "userns", "driver", "containerd", "gone", "ssh", "user"])
def test_layers_that_cannot_be_read_from_the_disk(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, facts = PLAIN, image(tmp_path)
    if why in ("rootless", "userns"):
        info = {"SecurityOptions": ["name=seccomp,profile=default", f"name={why}"]}
    elif why == "driver":
        facts = image(tmp_path, Name="btrfs")
    elif why == "containerd":
        facts = {"GraphDriver": None}
    elif why == "gone":
        facts = image(tmp_path, tmp_path / "none")
    elif why == "ssh":
        monkeypatch.setenv("DOCKER_HOST", "ssh://user@host.example")
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert layers_on_disk(info, facts) == []
