"""The real CUDA 12.1 image through each engine, beside a plain Dockerfile; what a push of a change sends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.builder import write_debian_tar
from reprobuild.net.index_settings import ca_bundle, indexes
from support.engines import Site, new_docker, old_docker, podman
from support.measuring import Printer, timed
from support.registry import serve_registry
from support.stack import CONSOLE, NAME, Stack

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.benchmark

# As people write it who keep pins alone. Its base is Debian with Python, ready, as `FROM python` would be.
PLAIN = """\
FROM scratch
ADD debian.tar /
COPY requirements.txt ca.pem {tool} /
ARG PIP_INDEX_URL UV_DEFAULT_INDEX
RUN export PIP_CERT=/ca.pem SSL_CERT_FILE=/ca.pem && {install}
"""
PIP = (
    "python3.11 -m venv --without-pip /opt/venv"
    " && /opt/venv/bin/python $(echo /pip-*.whl)/pip install --no-cache-dir -r requirements.txt"
)
UV = (
    "/uv venv --quiet --python python3.11 /opt/venv"
    " && /uv pip install --quiet --python /opt/venv --no-cache --compile-bytecode -r requirements.txt"
)


def test_the_embedded_engine(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    say = Printer(capsys, "embedded engine, CUDA 12.1")
    empty = Home(stack.folder / "empty")
    say(f"  {timed(lambda: fetch(stack.lock, Store(empty), CONSOLE)):6.1f} s  all fetched from the index")
    shutil.rmtree(empty.root)
    done = stack.image()
    for phase in done.phases:
        say(f"  {phase.seconds:6.1f} s  {phase.title}")
    say(f"  {done.seconds:6.1f} s  in all, with Debian")
    stack.forget(debian=False)
    say(f"  {stack.image().seconds:6.1f} s  in all, on a Debian root that is there")


@pytest.mark.parametrize("name", ["docker-20.10", "docker-26.1", "podman"])
def test_an_engine_beside_pip_and_uv(
    name: str,
    stack: Stack,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Once each, since it takes minutes. Our wheels are fetched already, those of pip and uv are not."""
    stack.image()
    say = Printer(capsys, f"{name}, CUDA 12.1")
    with _start(name, tmp_path / "site", request) as site:
        stack.forget(debian=False)
        done = stack.image("--engine", site.kind, env=site.env)
        for phase in done.phases:
            say(f"  {phase.seconds:6.1f} s  {phase.title}")
        say(f"  {done.seconds:6.1f} s  reprobuild image --engine, on a Debian root that is there")
        site.call("rmi", "--force", NAME)
        _prune(site)
        done = stack.image("--engine", site.kind, "--independent", "--json", env=site.env)
        for phase in done.phases:
            say(f"  {phase.seconds:6.1f} s  {phase.title}")
        say(f"  {done.seconds:6.1f} s  the same with --independent, from the Dockerfile")
        say(f"  digest {json.loads(done.stdout)['digest']}")
        found = json.loads(
            stack.run("compare", f"oci:{NAME}", f"{site.kind}:{NAME}", "--json", env=site.env).stdout
        )
        say(f"  {timed(lambda: stack.run('check', f'{site.kind}:{NAME}', env=site.env)):6.1f} s  check of it")
        say(f"  tree {' '.join(sorted({image['tree'] for image in found['images']}))} (both engines)")
        site.call("rmi", "--force", NAME)
        _prune(site)
        done = stack.run("load", NAME, "--into", site.kind, env=site.env)
        say(f"  {done.seconds:6.1f} s  reprobuild load, of the embedded engine's image")
        site.call("rmi", "--force", NAME)
        for tool, install in (("pip", PIP), ("uv", UV)):
            folder = tmp_path / tool
            _plain(stack, folder, tool, install)
            seconds = timed(partial(_build, site, folder))
            say(f"  {seconds:6.1f} s  {site.kind} build with {tool}, the same pins, with its downloads")
            site.call("rmi", "--force", "plain:1")
            _prune(site)
            shutil.rmtree(folder)


def test_bytes_pushed_for_a_change_of_one_package(
    stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say = Printer(capsys, "pushes")
    stack.image()
    changed = stack.locked("humanize")
    stack.image("--tag", "changed:1", lock=changed)
    with serve_registry(tmp_path / "registry") as host:
        for title, name in (("whole", NAME), ("one small package more", "changed:1")):
            done = stack.run("push", name, f"{host}/team/torch:1", "--force", "--json")
            pushed = json.loads(done.stdout)
            say(f"  {done.seconds:6.1f} s  {title}: {pushed['sent']:,} bytes sent, {pushed['there']:,} there")


def _start(name: str, folder: Path, request: pytest.FixtureRequest) -> AbstractContextManager[Site]:
    if name == "docker-26.1":
        return new_docker(folder, request.getfixturevalue("debian13"))
    return old_docker(folder) if name == "docker-20.10" else podman(folder)


def _plain(stack: Stack, folder: Path, tool: str, install: str) -> None:
    """Write the plain Dockerfile and what it copies."""
    folder.mkdir()
    write_debian_tar(stack.lock, stack.store, Host(stack.home, CONSOLE), folder / "debian.tar")
    pins = [f"{package.name}=={package.version}\n" for package in stack.lock.python]
    (folder / "requirements.txt").write_text("".join(pins))
    shutil.copy(ca_bundle() or "/etc/ssl/certs/ca-certificates.crt", folder / "ca.pem")
    if tool == "uv":
        shutil.copy(Path(sys.executable).with_name("uv").resolve(), folder / "uv")
    else:  # Debian's Python has none of its own
        (wheel,) = (package.wheel for package in stack.lock.python if package.name == "pip")
        tool = wheel.filename
        shutil.copy(stack.store.path(wheel.sha256), folder / tool)
    (folder / "Dockerfile").write_text(PLAIN.format(tool=tool, install=install))


def _build(site: Site, folder: Path) -> None:
    # The addresses go by the environment: an argument could be read by everybody.
    index = indexes().default
    env = {**os.environ, **site.env, "PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index}
    arguments = [f"--build-arg={name}" for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX")]
    command = [site.kind, "build", "--network", "host", *arguments, "--tag", "plain:1", str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def _prune(site: Site) -> None:
    """Take away what builds have left, which would fill the disk, and spare the next one work."""
    site.call("system", "prune", "--all", "--force")
    if site.kind == "docker" and site.keeps_time:
        site.call("buildx", "prune", "--all", "--force")
