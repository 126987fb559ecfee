from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprobuild.engines.docker_layers import are_readable, listed_layers, lower_folders


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
ID = "0123456789abcdef" * 4


def test_the_layers_that_docker_names(tmp_path: Path) -> None:
    a, b, c = (tmp_path / each for each in "abc")
    for each in (a, b, c):
        each.mkdir()
    assert listed_layers(image(a, b, c)) == [a, b, c]
    assert listed_layers(image(a)) == [a]
    for other in (image(a, Name="btrfs"), {"GraphDriver": None}, image(a, tmp_path / "none")):
        assert listed_layers(other) == []


@pytest.mark.usefixtures("local")
def test_who_may_read_a_daemon_s_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    assert are_readable(PLAIN)
    assert are_readable({"SecurityOptions": None})
    for why in ("rootless", "userns"):
        assert not are_readable({"SecurityOptions": ["name=seccomp,profile=default", f"name={why}"]})
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        assert not are_readable(PLAIN)
    monkeypatch.setenv("DOCKER_HOST", "ssh://user@host.example")
    assert not are_readable(PLAIN)


def mounts(options: str, point: str = f"/var/lib/docker/rootfs/overlayfs/{ID}") -> str:
    """A list of mounts (proc_pid_mountinfo(5)) that has a container's among others."""
    return f"""\
24 1 0:22 / /proc rw,relatime shared:12 - proc proc rw
60 24 0:53 / /var/lib/other/{"f" * 64} rw,relatime - overlay overlay rw,lowerdir=/x,upperdir=/y/1/fs
61 24 0:53 / {point} rw,relatime master:3 - overlay overlay rw,{options},workdir=/d/s/9/work,uuid=on
"""


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("lowerdir=/d/s/3/fs:/d/s/2/fs,upperdir=/d/s/9/fs", ["/d/s/3/fs", "/d/s/2/fs"]),
        ("lowerdir+=/d/s/3/fs,lowerdir+=/d/s/2/fs,upperdir=/d/s/9/fs", ["/d/s/3/fs", "/d/s/2/fs"]),
        # A list that would not fit on a page.
        ("lowerdir=3/fs:2/fs,upperdir=/d/s/9/fs", ["/d/s/3/fs", "/d/s/2/fs"]),
        ("lowerdir=/d\\040e/3/fs:/d/2/fs,upperdir=/d/s/9/fs", ["/d e/3/fs", "/d/2/fs"]),
        ("lowerdir=/d\\134:e/3/fs:/d/2/fs,upperdir=/d/s/9/fs", []),
        ("lowerdir=3/fs", []),
        ("upperdir=/d/s/9/fs", []),
    ],
)
def test_what_lies_below_a_mounted_container(options: str, found: list[str]) -> None:
    assert lower_folders(mounts(options), ID) == found


def test_a_container_that_is_not_mounted() -> None:
    assert lower_folders(mounts("lowerdir=/a:/b,upperdir=/c/1/fs", point=f"/x/{ID}/merged"), ID) == []
    assert lower_folders("", ID) == []
    assert lower_folders("nonsense\n - overlay\n", ID) == []
