"""The layer of the Debian system within a build."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers import system
from reprobuild.layers.builder import write_system_tar
from reprobuild.lock.model import Lock
from reprobuild.oci.tar_writer import LayerWriter
from support.building import lock_for
from support.built_layers import build_all, left_over
from support.fixtures import fixtures_of
from support.wheels import put, simple_wheel

globals().update(fixtures_of("support.built_layers"))


@pytest.mark.parametrize(
    "path",
    ["opt/reprobuild/json.py", "usr/lib/python3.11/reprobuild_hook.py", "usr/lib/python3/x/reprobuild.pth"],
)
def test_a_system_that_uses_a_name_of_reprobuild_s_own(
    home: Home, ran: list[str], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Python would import it in place of the hook, or of what the self-test imports."""
    honest = vars(system)["write_debian"]

    def evil(lock: Lock, store: Store, home: Home, out: LayerWriter) -> None:
        honest(lock, store, home, out)
        out.file(path, 0o644, 1, [b"x"])

    monkeypatch.setattr(system, "write_debian", evil)
    with pytest.raises(BuildError, match=rf"Debian bookworm, .* packages: has the file '/{path}', a name"):
        build_all(lock_for(home, []), home)
    assert left_over(home) == []


def test_a_failing_debian_stops_the_readers(
    home: Home, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise BuildError("the Debian packages could not be installed")

    monkeypatch.setattr(system, "write_debian", fail)
    with pytest.raises(BuildError, match="Debian"):
        build_all(lock_for(home, [put(home, "toy", simple_wheel("toy"))]), home)
    assert left_over(home) == []


def test_the_debian_layer_as_a_plain_tar(home: Home, ran: list[str], tmp_path: Path) -> None:
    lock = lock_for(home, [])
    target = tmp_path / "debian.tar"
    write_system_tar(lock, Store(home), Host(home, Console(quiet=True)), target)
    names = subprocess.run(["tar", "-tf", str(target)], capture_output=True, check=True).stdout.decode()
    assert names.split() == ["./", "etc/", "usr/", "usr/bin/", "usr/bin/sh"]
    assert list(tmp_path.glob(".*")) == []
