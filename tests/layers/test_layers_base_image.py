"""What is put on top of a base may add and change, not take away; the rest: real/test_real_base_image.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import BuildError
from reprobuild.host import sandbox
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers import unpacked_layers
from reprobuild.layers.base_image import _refuse_removals
from reprobuild.layers.cache import LayerCache
from support.small_root import files_of, layer_of

BASE = ("etc", "etc/one", "opt", "opt/a", "opt/a/b")


@pytest.mark.parametrize(
    ("script", "gone"),
    [
        ("echo x > /etc/one; mkdir -p /new/er /etc/more; rm -r /new/er", None),
        ("rm /etc/one", "/etc/one"),
        ("rm -r /opt/a", "/opt/a"),
        ("rm -r /opt/a; mkdir /opt/a", "/opt/a"),
    ],
)
def test_what_is_taken_away_is_refused(tmp_path: Path, script: str, gone: str | None) -> None:
    needs("crun")
    home, console = Home(tmp_path / "home"), Console(quiet=True)
    programs: dict[str, bytes | str] = {p: s.read_bytes() for p, s in files_of(["sh", "rm", "mkdir"]).items()}
    layer = layer_of(home, {**programs, "bin": "usr/bin", "etc/one": b"1", "opt/a/b": b"b"})
    below = unpacked_layers.unpack(
        Host(home, console), LayerCache(home).blob(layer.digest), layer.diff_id, lambda _: None
    )
    task = sandbox.Task(argv=["/bin/sh", "-ec", script], env={"PATH": "/usr/bin"}, writable=True)
    with home.scratch("run") as folder:
        done = sandbox.run(folder, [below], task)
        assert done.returncode == 0, done.stderr
        if gone is None:
            _refuse_removals(folder / "upper", BASE)
            assert (folder / "upper/etc/one").read_text() == "x\n"
            return
        with pytest.raises(BuildError, match=rf"take files of the base away: {gone}"):
            _refuse_removals(folder / "upper", BASE)
