from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from reprobuild.engines.select import choose, maker
from reprobuild.errors import HostError
from reprobuild.host import process
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host

CONSOLE = Console()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A machine without Docker and Podman."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    which = process.which
    monkeypatch.setattr(process, "which", lambda name: None if name in ("podman", "docker") else which(name))
    return Home(tmp_path / "home")


def with_podman(
    folder: Path, monkeypatch: pytest.MonkeyPatch, status: int, said: str = '{"host": {}}'
) -> None:
    program = folder / "podman"
    program.write_text(f"#!/bin/sh\necho '{said}'\necho broken >&2\nexit {status}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    which = process.which
    monkeypatch.setattr(process, "which", lambda name: str(program) if name == "podman" else which(name))


def test_auto_is_oci_where_nothing_else_answers(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert choose("auto", Host(home, CONSOLE)).kind == "oci"
    assert "engine: oci, since neither Docker nor Podman answers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (0, '{"host": {}}', "podman"),
        (0, "", "oci"),
        (0, "[]", "oci"),
        (0, '{"host": 1}', "oci"),
        (125, '{"host": {}}', "oci"),
    ],
)
def test_auto_is_podman_where_it_works(
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    said: str,
    expected: str,
) -> None:
    with_podman(tmp_path, monkeypatch, status, said)
    assert choose("auto", Host(home, CONSOLE)).kind == expected
    assert f"engine: {expected}" in capsys.readouterr().err


def test_one_that_is_named_must_answer(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"no Docker daemon answers: {tmp_path}/none.sock: No such file or directory"
    with pytest.raises(HostError, match=re.escape(said)):
        choose("docker", Host(home, CONSOLE))
    with pytest.raises(HostError, match="podman is not installed"):
        choose("podman", Host(home, CONSOLE))
    with_podman(tmp_path, monkeypatch, 1)
    with pytest.raises(HostError, match="podman does not work on this machine: broken"):
        choose("podman", Host(home, CONSOLE))


@pytest.mark.parametrize("kind", ["oci", "podman"])
def test_a_builder_is_docker_s(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with_podman(tmp_path, monkeypatch, 0)
    with pytest.raises(HostError, match="only Docker has builders"):
        choose("oci" if kind == "oci" else "podman", Host(home, CONSOLE), "remote")


def test_who_makes_the_image(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_podman(tmp_path, monkeypatch, 0)
    host = Host(home, CONSOLE)
    oci, podman = choose("oci", host), choose("podman", host)
    assert maker(oci, host, independent=False) is oci
    assert maker(podman, host, independent=True) is podman
    handed = maker(podman, host, independent=False)
    assert (handed.kind, handed.built_by) == ("podman", "oci")
    assert handed.images is podman.images
    with pytest.raises(HostError, match="--independent: the engine is oci"):
        maker(oci, host, independent=True)
