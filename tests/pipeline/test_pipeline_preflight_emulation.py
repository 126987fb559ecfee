"""Images of another architecture need an emulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.errors import HostError
from reprobuild.pipeline.preflight import emulation
from support.index import Index

if TYPE_CHECKING:
    from support.commands import Call
from support.two_platforms import BOTH

pytest_plugins = ["support.commands", "support.family", "support.two_platforms"]


def test_no_image_of_the_other(
    both: Index, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("reprobuild.pipeline.steps.check_host", lambda _: None)
    monkeypatch.setattr(emulation, "_BINFMT", tmp_path)
    assert call("lock", "--cuda", "12.1", *BOTH).status == 0
    said = call("image", "torch-cu121", "--platform", "linux/arm64")
    assert said.status == 7
    assert (
        "the lock is for linux/arm64, but the embedded engine only makes images for this machine" in said.err
    )
    assert "binfmt_misc with qemu-aarch64" in said.err
    said = call("render", "torch-cu121", "-o", "ctx", "--platform", "linux/arm64")
    assert (said.status, "has no emulator for aarch64 programs" in said.err) == (7, True)
    assert not Path("ctx").exists()


@pytest.mark.parametrize(
    ("entry", "runs"),
    [
        ("enabled\ninterpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P\nflags: POCF\noffset 0\n", True),
        ("enabled\ninterpreter /usr/bin/qemu-aarch64-static\nflags: POC\noffset 0\n", False),
        ("disabled\ninterpreter /usr/bin/qemu-aarch64-static\nflags: F\noffset 0\n", False),
        ("", False),
    ],
)
def test_an_emulator_that_containers_can_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, entry: str, runs: bool
) -> None:
    monkeypatch.setattr(emulation, "_BINFMT", tmp_path)
    monkeypatch.setattr(emulation, "architecture", lambda: "amd64")
    (tmp_path / "qemu-aarch64").write_text(entry)
    if runs:
        emulation.check_platform("linux/arm64", "podman")
    else:
        with pytest.raises(HostError, match="no emulator for aarch64"):
            emulation.check_platform("linux/arm64", "podman")
    with pytest.raises(HostError, match="embedded engine"):
        emulation.check_platform("linux/arm64", "oci")
    emulation.check_platform("linux/amd64", "oci")
