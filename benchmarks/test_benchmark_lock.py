"""How long a cold lock takes, beside uv's and apt's own time for the same answer."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from reprobuild.host import process
from reprobuild.host.console import Console
from reprobuild.host.machine import architecture
from reprobuild.lock.wheel_tags import glibc_of
from reprobuild.net.session import session
from reprobuild.resolve.debian import DebianRequest, resolve_debian
from reprobuild.resolve.target import TargetPython
from reprobuild.resolve.uv_command import ALWAYS, resolve_python
from support.measuring import Printer, medians, watch
from support.resolving import resolution

ROUNDS = 5


def test_cold_lock_against_uv_and_apt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command, from the start of its process, beside one uv and two apt calls, one after another.

    The calls are those that the lock makes, with the same arguments: `uv pip compile` for the torch that is
    known already, `apt-get update`, `apt-get install --print-uris`. Every run has an empty cache.
    """
    times: dict[str, list[float]] = defaultdict(list)

    def run(argv: list[str], **options: Any) -> process.Completed:
        start = time.perf_counter()
        done = process.run(argv, **options)
        kind = next((word for word in ("update", "install", "compile") if word in argv), None)
        if kind is not None:
            times["uv" if kind == "compile" else f"apt {kind}"].append(time.perf_counter() - start)
        return done

    monkeypatch.setattr("reprobuild.resolve.apt.run", run)
    monkeypatch.setattr("reprobuild.resolve.uv_command.run", run)
    say = Printer(capsys, "cold lock, CUDA 12.1")
    for number in range(ROUNDS):
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / f"alone{number}"))
        wanted = DebianRequest(suite="bookworm", architecture=architecture(), python="3.11", apt=())
        debian = resolve_debian(wanted, keep={}, console=Console(quiet=True))
        target = TargetPython("3.11", architecture(), glibc_of(debian))
        with session() as http:
            resolve_python(["torch==2.4.1", *ALWAYS], resolution(http, target=target, upgrade=frozenset()))
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        env = {**os.environ, "UV_CACHE_DIR": str(tmp_path / f"lock{number}")}
        program = str(Path(sys.executable).with_name("reprobuild"))
        times["reprobuild lock"].append(
            watch([program, "lock", "--cuda", "12.1"], cwd=folder, env=env).seconds
        )
    say.series(times)
    middle = medians(times)
    together = middle["uv"] + middle["apt update"] + middle["apt install"]
    say(f"  uv and apt together {together:.2f} s; ratio {middle['reprobuild lock'] / together:.2f}, goal 1.5")
