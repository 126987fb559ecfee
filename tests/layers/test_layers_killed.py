"""A build that is killed at any moment, while files arrive and layers are made: the next one goes on."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.host.verified import unsealed
from reprobuild.lock.model import Lock
from reprobuild.oci.blobs import Blobs
from support.bench import until
from support.building import lock_for
from support.server import serve
from support.wheels import Item, put, wheel_bytes

pytestmark = pytest.mark.slow

# What `image` does before its self-test, with a stand-in for Debian and for the sandbox.
BUILD = """
import pickle
import sys
from pathlib import Path

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.fetch.scheduler import fetching
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from support.building import no_context, without_debian

without_debian(pytest.MonkeyPatch())
home = Home(Path(sys.argv[1]))
host = Host(home, Console(quiet=True))
with home.lock("build", host.console):
    lock = pickle.loads(Path(sys.argv[2]).read_bytes())
    with fetching(lock, Store(home), host.console) as arrivals:
        print(OciEngine(host).build(lock, no_context, arrivals))
"""


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Lock]:
    """Six packages of up to some megabytes, on a server that takes about a second for the largest."""
    rng = random.Random(5)
    made = Home(tmp_path / "made")
    packages = []
    for n, name in enumerate(("numpy", "torch", "a", "b", "c", "d")):
        files: dict[str, bytes | str | Item] = {f"p{n}/lib.so": rng.randbytes((n + 1) << 18)}
        files |= {f"p{n}/m{k}.py": f"VALUE = {k}\n" * 50 for k in range(40)}
        packages.append(put(made, name, wheel_bytes(name, "1", files)))
    plain = lock_for(made, packages)
    with serve() as server:
        python = []
        for package in plain.python:
            content = Store(made).path(package.wheel.sha256).read_bytes()
            url = server.add(f"/{package.wheel.filename}", content, rate=2 << 20)
            python.append(replace(package, wheel=replace(package.wheel, url=url)))
        yield replace(plain, python=python, debian=())


def start(home: Path, lock: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(home), str(lock)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def hold_store(home: Home) -> None:
    """Every file that has a name has the bytes of it: of what was fetched, and of finished layers."""
    for path in (home.root / "store/sha256").glob("*/*"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    for path in (home.root / "layers").glob("*.json"):
        layer = json.loads(unsealed(path.stem, path.read_bytes()) or b"")["layer"]
        blob = Blobs(home).path(layer["digest"])
        assert "sha256:" + hashlib.sha256(blob.read_bytes()).hexdigest() == layer["digest"]


def test_killed_at_thirty_moments(lock: Lock, tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.write_bytes(pickle.dumps(lock))  # no lock file: it lacks what the smallest real image has
    begin = time.monotonic()
    whole = start(tmp_path / "whole", file)
    digest, err = whole.communicate()
    seconds = time.monotonic() - begin
    assert whole.returncode == 0, err.decode()
    rng = random.Random(30)
    killed = 0
    for n in range(30):
        home = Home(tmp_path / f"home-{n // 3}")  # three in turn go on with what the one before left
        process = start(home.root, file)
        try:
            process.communicate(timeout=rng.uniform(0.1, 1) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
        hold_store(home)
        if n % 3 == 2:
            last = start(home.root, file)
            out, err = last.communicate()
            assert (last.returncode, out) == (0, digest), err.decode()
            assert [*home.folder("tmp").iterdir()] == []
    assert killed


def test_interrupted_while_files_arrive_and_layers_are_made(lock: Lock, tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.write_bytes(pickle.dumps(lock))
    home = Home(tmp_path / "home")
    process = start(home.root, file)
    until(lambda: list((home.root / "tmp").glob("layers.*/wheels-*")), process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert b"KeyboardInterrupt" in err
    assert [*home.folder("tmp").iterdir()] == []
    hold_store(home)
