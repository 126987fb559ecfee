from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import HostError
from reprobuild.host import namespaces, process


@pytest.mark.core
def test_what_is_inside_dies_with_a_reprobuild_that_is_killed(tmp_path: Path) -> None:
    """The one who is killed cannot clean up: the kernel has to, mounts and grandchildren included."""
    needs("unshare")
    inside = "mount -t tmpfs none mnt && touch mounted && sh -c 'sleep 987654 & wait' & wait"
    (tmp_path / "mnt").mkdir()
    code = (
        "from pathlib import Path; from reprobuild.host import namespaces, process\n"
        f"process.run([*namespaces.prefix(), 'sh', '-c', {inside!r}], cwd=Path({str(tmp_path)!r}))"
    )
    killed = subprocess.Popen([sys.executable, "-c", code])
    _until(lambda: (tmp_path / "mounted").exists() and _sleepers())
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    _until(lambda: not _sleepers())
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


def _sleepers() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == b"sleep\x00987654\x00":
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def _until(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_machine_without_unshare_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "which", lambda _: None)
    with pytest.raises(HostError, match="unshare is not installed") as caught:
        namespaces.check()
    assert caught.value.hint == "apt-get install -y util-linux"


def _refusing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str) -> None:
    """An unshare that the machine lets do anything but one option."""
    program = tmp_path / "unshare"
    program.write_text(f'#!/bin/sh\ncase " $* " in *" {option} "*) echo refused >&2; exit 1;; esac\n')
    program.chmod(0o755)
    monkeypatch.setattr(
        process, "which", lambda name: str(program) if name == "unshare" else f"/usr/bin/{name}"
    )
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def test_a_machine_that_allows_no_namespace_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _refusing(monkeypatch, tmp_path, "--mount")
    with pytest.raises(HostError, match="does not let you make a mount namespace: refused") as caught:
        namespaces.check(all_ids=True)
    assert "unprivileged_userns_clone" in caught.value.hint


def test_a_user_without_subordinate_ids_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _refusing(monkeypatch, tmp_path, "--map-auto")
    namespaces.check()
    with pytest.raises(HostError, match="no range of subordinate ids: refused") as caught:
        namespaces.check(all_ids=True)
    assert "/etc/subuid" in caught.value.hint
