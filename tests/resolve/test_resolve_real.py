"""Against the index and the Debian mirror that this machine is set up with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import uv

from reprobuild import process
from reprobuild.archives import architecture
from reprobuild.console import Console
from reprobuild.errors import ResolveError
from reprobuild.lockfile import Lock
from reprobuild.lockparse import parse_lock
from reprobuild.network import session
from reprobuild.request import Request
from reprobuild.resolve import Upgrade, resolve
from reprobuild.resolve.debian import DebianRequest, resolve_debian
from reprobuild.resolve.python import ALWAYS, resolve_python
from reprobuild.resolve.target import Target, glibc_of
from support.resolving import request

pytestmark = pytest.mark.real

CONSOLE = Console(quiet=True)
PROGRAM = """
import sys
from reprobuild.console import Console
from reprobuild.request import Request
from reprobuild.resolve import Upgrade, resolve
wanted = Request.from_dict({"cuda": "12.1", "packages": ["pandas"], "apt": ["git"]}, "test")
found = resolve(wanted, existing=None, upgrade=Upgrade(), console=Console(quiet=True))
sys.stdout.buffer.write(found.dump().encode())
"""


def lock(wanted: Request, existing: Lock | None = None) -> Lock:
    return resolve(wanted, existing=existing, upgrade=Upgrade(), console=CONSOLE)


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


@pytest.mark.benchmark
def test_cold_lock_against_uv_and_apt_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints the time of a whole lock, and of its uv and apt calls one by one, nothing beside."""
    spent = 0.0

    def timed(argv: list[str], **options: Any) -> process.Completed:
        nonlocal spent
        start = time.perf_counter()
        done = process.run(argv, **options)
        spent += time.perf_counter() - start
        return done

    monkeypatch.setattr("reprobuild.resolve.debian.run", timed)
    monkeypatch.setattr("reprobuild.resolve.python.run", timed)
    wanted = DebianRequest(suite="bookworm", python="3.11", apt=())
    lines = []
    for number in range(3):
        spent = 0.0
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / f"alone{number}"))
        debian = resolve_debian(wanted, keep={}, console=CONSOLE)
        target = Target("3.11", architecture(), glibc_of(debian))
        with session() as http:
            resolve_python(
                ["torch==2.4.1", *ALWAYS], target, as_of=None, existing=None, upgrade=(), session=http
            )
        tools = spent
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / f"lock{number}"))
        start = time.perf_counter()
        lock(request(cuda="12.1"))
        whole = time.perf_counter() - start
        lines.append(f"lock {whole:.2f} s; uv and apt alone {tools:.2f} s; ratio {whole / tools:.2f}\n")
    with capsys.disabled():
        sys.stderr.write("\n" + "".join(lines))
