"""Against the index and the Debian mirror that this machine is set up with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import uv

from reprobuild.errors import ResolveError
from reprobuild.host.console import Console
from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from reprobuild.request.model import Request
from reprobuild.resolve.resolver import Upgrade, resolve
from support.hosts import quiet_host
from support.resolving import request

pytestmark = pytest.mark.slow

CONSOLE = Console(quiet=True)
PROGRAM = """
import sys
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.request.model import Request
from reprobuild.resolve.resolver import Upgrade, resolve
wanted = Request.from_dict({"cuda": "12.1", "packages": ["pandas"], "apt": ["git"]}, "test")
host = Host(Home.from_environment(), Console(quiet=True))
found = resolve(wanted, existing=None, upgrade=Upgrade(), host=host)
sys.stdout.buffer.write(found.dump().encode())
"""


def lock(wanted: Request, existing: Lock | None = None) -> Lock:
    return resolve(wanted, existing=existing, upgrade=Upgrade(), host=quiet_host())


def test_cuda_12_1(tmp_path: Path) -> None:
    found = lock(request(cuda="12.1"))
    expected = {"torch": "2.4.1", "cuda": "12.1.105", "cudnn": "9.1.0.70", "nccl": "2.20.5"}
    assert {name: found.stack[name] for name in expected} == expected
    assert found.stack["python"].startswith("3.11.")
    text = found.dump()
    assert parse_lock(text, "test") == found
    assert lock(request(cuda="12.1"), found).dump() == text
    path = tmp_path / "pylock.test.toml"
    path.write_text(text)
    command = [uv.find_uv_bin(), "pip", "install", "--dry-run", "--python", sys.executable]
    command += ["--python-version", "3.11", "--target", str(tmp_path / "site"), "-r", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "+ torch==2.4.1" in done.stderr


def test_cuda_13() -> None:
    stack = lock(request(cuda="13.0")).stack
    assert stack["cuda"].startswith("13.0.")
    assert {"torch", "cudnn", "nccl"} <= stack.keys()


def test_cuda_that_no_torch_serves() -> None:
    with pytest.raises(ResolveError) as caught:
        lock(request(cuda="99.9"))
    assert "12.1 (torch 2.4.1)" in caught.value.hint


def test_another_release() -> None:
    found = lock(request(cuda="12.4", python="3.13", base={"debian": "trixie"}))
    assert found.stack["python"].startswith("3.13.")


def test_same_bytes_whatever_the_surroundings(tmp_path: Path) -> None:
    surroundings = [
        {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "1", "UMASK": "022", "CWD": "/"},
        {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "2", "UMASK": "077"},
    ]
    found = []
    for number, changes in enumerate(surroundings):
        umask, folder = changes.pop("UMASK"), changes.pop("CWD", str(tmp_path))
        env = {**os.environ, **changes, "UV_CACHE_DIR": str(tmp_path / f"cache{number}")}
        shell = ["sh", "-c", f'umask {umask}; exec "$@"', "sh", sys.executable, "-c", PROGRAM]
        done = subprocess.run(shell, env=env, cwd=folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        found.append(done.stdout.decode())
    assert found[0] == found[1]
