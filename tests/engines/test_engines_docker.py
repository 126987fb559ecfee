"""Bad days of a Docker daemon: gone at each step of a build, absent, out of space. Nothing is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reprobuild.engines.docker import DockerEngine
from reprobuild.errors import EngineError, HostError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from support.bench import Bench, until
from support.disk import tiny_disk
from support.engines import Site, old_docker

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines


def containers(site: Site) -> list[str]:
    return site.call("ps", "--quiet").split()


def images(site: Site) -> list[str]:
    return site.call("images", "--all", "--quiet").split()


def self_tests(site: Site) -> list[str]:
    return site.call("ps", "--quiet", "--filter", "label=dev.reprobuild.selftest").split()


@pytest.mark.parametrize("event", [images, containers], ids=["layers", "step"])
def test_the_daemon_is_gone_in_a_build(
    bench: Bench, digest: str, tmp_path: Path, event: Callable[[Site], list[str]]
) -> None:
    """When the first layer is there, and when a step runs."""
    with old_docker(tmp_path / "site") as site:
        argv = ("image", bench.lock, "--engine", "docker", "--independent", "--tag", "team/x:1")
        gone_at(event, bench, site, *argv)
    assert bench.leftovers() == []


def test_the_daemon_is_gone_in_a_self_test(bench: Bench, digest: str, tmp_path: Path) -> None:
    with old_docker(tmp_path / "site") as site:
        bench.run("load", digest, "--into", "docker", "--tag", "team/x:1", env=site.env)
        gone_at(self_tests, bench, site, "check", "docker:team/x:1")
    assert bench.leftovers() == []


def gone_at(event: Callable[[Site], list[str]], bench: Bench, site: Site, *argv: str) -> None:
    """Start a command, and end the daemon as soon as the event is seen in it."""
    assert site.process is not None
    process = bench.start(*argv, **site.env)
    try:
        until(lambda: event(site), process)
        site.process.terminate()
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == EngineError.exit_code, err.decode()
    assert "lost the connection to Docker" in err.decode()
    assert "Traceback" not in err.decode()


def test_the_daemon_is_gone_while_an_image_is_loaded(
    bench: Bench, digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "image.tar"
    bench.run("export", digest, str(archive))
    with old_docker(tmp_path / "site") as site:
        assert site.process is not None
        for name, value in site.env.items():
            monkeypatch.setenv(name, value)
        engine = DockerEngine(Host(Home(tmp_path / "home"), Console(quiet=True)))

        def chunks() -> Iterator[bytes]:
            with archive.open("rb") as file:
                yield file.read(8 << 20)
                assert site.process is not None
                site.process.terminate()
                site.process.wait(60)
                while chunk := file.read(1 << 20):
                    yield chunk

        with pytest.raises(EngineError, match="lost the connection to Docker"):
            engine.load(chunks())


def test_no_daemon_at_all(bench: Bench, tmp_path: Path) -> None:
    env = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    _, err = bench.run("image", bench.lock, "--engine", "docker", status=HostError.exit_code, env=env)
    assert "no Docker daemon answers" in err


def test_a_new_docker_command_without_buildx_is_refused_before_anything_is_built(
    bench: Bench, tmp_path: Path
) -> None:
    command = tmp_path / "bin/docker"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\n[ "$1" = version ] && exec echo 28.2.2 1.41\nexit 1\n')
    command.chmod(0o755)
    with old_docker(tmp_path / "site") as site:
        env = {**site.env, "PATH": f"{command.parent}:{site.env['PATH']}"}
        argv = ("image", bench.lock, "--engine", "docker", "--independent")
        _, err = bench.run(*argv, status=HostError.exit_code, env=env)
    assert "has no buildx" in err
    assert "apt-get install -y docker-buildx" in err


@pytest.mark.parametrize("options", [(), ("--independent",)], ids=["handed over", "independent"])
def test_an_engine_without_space(bench: Bench, digest: str, tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "site").mkdir()
    with tiny_disk(tmp_path / "site/data", 500 << 20), old_docker(tmp_path / "site") as site:
        argv = ("image", bench.lock, "--engine", "docker", *options, "--tag", "team/x:1")
        _, err = bench.run(*argv, status=EngineError.exit_code, env=site.env)
        assert "Docker has no space left" in err
        assert "docker system prune" in err
        assert site.names() == []
