"""What a base image's files say of it."""

from __future__ import annotations

import pytest

from reprobuild.errors import ImageError, ResolveError
from reprobuild.oci import merge_layers
from support.base_images import locked
from support.bases import Pusher, files
from support.fixtures import fixtures_of
from support.images import Entry, layer

pytest_plugins = ["support.family"]
globals().update(fixtures_of("support.base_images"))


DEBIAN = 'ID=debian\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'


def test_a_later_layer_decides(team: Pusher) -> None:
    cuda = {"opt/lib/libcudart.so.12": b"cuda", "opt/lib/libcuda.so.1": b"the driver's"}
    gone = layer("opt/lib/.wh.libcudart.so.12", Entry(path="usr/lib/os-release", content=DEBIAN.encode()))
    team.image([files(cuda), gone])
    found = locked(f"{team.name}:1")
    assert (found.cuda, found.suite) == ((), "bookworm")


def test_python(team: Pusher) -> None:
    team.image([files(python="")])
    with pytest.raises(ResolveError, match=r"base:1 \(Toy 1\) has no Python 3\.11"):
        locked(f"{team.name}:1")
    team.image([files(python="usr/local"), layer("usr/local/lib/python3.11/.wh.venv")])
    with pytest.raises(ResolveError, match=r"without the module venv \(/usr/local/lib/python3\.11/venv"):
        locked(f"{team.name}:1")
    # Of Debian it can be put on top.
    team.image([files(python="", system=DEBIAN)])
    assert locked(f"{team.name}:1").python == ""


def test_another_c_library(team: Pusher) -> None:
    team.image([files(), layer("usr/lib/x/.wh.libc.so.6")])
    with pytest.raises(ResolveError, match="has no glibc for linux/amd64"):
        locked(f"{team.name}:1")


def test_no_shell(team: Pusher) -> None:
    team.image([files(), layer("usr/bin/.wh.sh")])
    with pytest.raises(ResolveError, match="has no /bin/sh"):
        locked(f"{team.name}:1")


def test_cuda_of_its_own(team: Pusher, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["libcublas.so.12.1.3.1", "libcudnn_ops_infer.so.8", "libnccl.so.2.18.1", "libcudart.so.12"]
    team.image([files({f"usr/local/cuda/lib64/{name}": b"cuda" for name in names})])
    with pytest.raises(ResolveError, match=r"ships its own CUDA libraries: .*libcublas.* and 1 more") as bad:
        locked(f"{team.name}:1")
    assert "base.allow-cuda = true" in bad.value.hint
    found = locked(f"{team.name}:1", base={"allow-cuda": True})
    assert found.cuda == tuple(sorted(f"/usr/local/cuda/lib64/{name}" for name in names))
    assert "ships its own CUDA libraries" in capsys.readouterr().err


def test_a_library_of_gigabytes_is_not_looked_at(team: Pusher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_layers, "MOST_KEPT", 1000)
    team.image([files({"usr/lib/x/libc.so.6": bytes(1001)})])
    with pytest.raises(ImageError, match="at most 1,000"):
        locked(f"{team.name}:1")
