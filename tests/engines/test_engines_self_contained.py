"""The Dockerfile that needs no context gives the files of the context form; older builders say what to do."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from conftest import needs
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock
from reprobuild.pipeline.workspace import read_lock
from support.bench import Bench
from support.engines import Site, old_docker, podman
from support.server import Server, serve

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines

FALL_BACK = "this-builder-is-too-old:use-reprobuild-render-without--self-contained"


@pytest.fixture(scope="module")
def server(bench: Bench, digest: str) -> Iterator[Server]:
    """All that is locked, served on loopback."""
    lock, store = read_lock(bench.folder / bench.lock), Store(Home(bench.home))
    with serve() as server:
        for deb in lock.debian:
            server.add("/" + quote(deb.path, safe="/~"), store.path(deb.sha256).read_bytes())
        for package in lock.python:
            server.add(f"/{package.wheel.filename}", store.path(package.wheel.sha256).read_bytes())
        yield server


@pytest.fixture(scope="module")
def lock(bench: Bench, server: Server) -> Lock:
    """The lock whose wheels are on that server; its file is ``pylock.loopback.toml``."""
    found = read_lock(bench.folder / bench.lock)
    served = [
        replace(p, wheel=replace(p.wheel, url=f"{server.url}/{p.wheel.filename}")) for p in found.python
    ]
    found = replace(found, python=served)
    (bench.folder / "pylock.loopback.toml").write_text(found.dump())
    return found


@pytest.fixture(scope="module")
def dockerfile(bench: Bench, server: Server, lock: Lock) -> Path:
    # A mirror with a login, which must not get into the file: this server asks for none.
    mirror = server.url.replace("://", "://me:hunter2@")
    names = ("REPROBUILD_DEBIAN_MIRROR", "REPROBUILD_DEBIAN_SECURITY_MIRROR")
    argv = ("render", "pylock.loopback.toml", "--self-contained", "-o", "alone")
    bench.run(*argv, env=dict.fromkeys(names, mirror))
    (file,) = (bench.folder / "alone").iterdir()
    assert "hunter2" not in file.read_text()
    return file


@pytest.fixture(scope="module")
def site(docker26: Site, debian13: Path) -> Iterator[Site]:
    """With an image that unpacks packages: any Debian will do, and there is none to be pulled.

    No later module asks for this daemon: the disk that all its images take is given back.
    """
    folders = ("bin", "lib", "lib64", "sbin", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin")
    archive = debian13.with_name("tools.tar")
    subprocess.run(["tar", "-C", debian13, "-cf", archive, *folders], check=True)
    docker26.call("import", str(archive), "tools:1")
    archive.unlink()
    yield docker26
    docker26.call("system", "prune", "--all", "--force")


def alone(site: Site, file: Path, name: str) -> subprocess.CompletedProcess[str]:
    argv = [
        "docker",
        "buildx",
        "build",
        "--build-arg",
        "TOOLS=tools:1",
        "--progress",
        "plain",
        "--load",
        "-t",
        name,
    ]
    env = {**os.environ, **site.env}
    with file.open() as text:
        return subprocess.run([*argv, "-"], stdin=text, env=env, capture_output=True, text=True, check=False)


def test_it_gives_the_files_of_the_other_form(bench: Bench, lock: Lock, dockerfile: Path, site: Site) -> None:
    bench.run("image", "pylock.loopback.toml", "--tag", "team/context:1")
    try:
        done = alone(site, dockerfile, "team/alone:1")
        assert done.returncode == 0, done.stderr[-3000:]
        bench.run("compare", "oci:team/context:1", "docker:team/alone:1", env=site.env)
    finally:
        bench.run("remove", "team/context:1")


def test_other_bytes_than_those_locked_end_the_build(dockerfile: Path, site: Site, tmp_path: Path) -> None:
    """The hash is changed here, since a builder that has seen a hash once does not fetch its file again."""
    bad = tmp_path / "Dockerfile"
    bad.write_text(
        re.sub(r"--checksum=sha256:\w{64}", f"--checksum=sha256:{64 * '0'}", dockerfile.read_text(), count=1)
    )
    done = alone(site, bad, "alone/bad:1")
    assert done.returncode != 0
    assert "digest mismatch" in done.stderr
    assert "alone/bad:1" not in site.names()


def test_another_debian_root_ends_the_build(dockerfile: Path, site: Site, tmp_path: Path) -> None:
    """The digest is changed here, as if a package had been installed in another way."""
    bad = tmp_path / "Dockerfile"
    text = dockerfile.read_text()
    (line,) = (line for line in text.splitlines() if "debian_root.py / sha256:" in line)
    bad.write_text(text.replace(line, line[:-64] + 64 * "0"))
    done = alone(site, bad, "alone/bad:1")
    assert done.returncode != 0
    assert "the Debian root is not the one of the lock" in done.stderr
    assert "alone/bad:1" not in site.names()


def test_an_old_docker_names_the_fall_back(dockerfile: Path, tmp_path: Path) -> None:
    with old_docker(tmp_path / "site") as site, dockerfile.open() as text:
        env = {**os.environ, **site.env, "DOCKER_BUILDKIT": "0"}
        command = ["docker", "build", "-"]
        done = subprocess.run(command, stdin=text, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert FALL_BACK in done.stderr


def test_an_old_buildah_names_the_fall_back(dockerfile: Path, tmp_path: Path) -> None:
    needs("podman")
    (tmp_path / "empty").mkdir()
    with podman(tmp_path / "site") as site:
        command = ["podman", "build", "--file", str(dockerfile), str(tmp_path / "empty")]
        env = {**os.environ, **site.env}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert FALL_BACK in done.stderr
