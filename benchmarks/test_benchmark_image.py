"""Time and memory of the real CUDA 12.1 image: layers, rebuilds, self-test, import.

What the user's own store (REPROBUILD_HOME) has is not fetched again; nothing there is changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from isal import isal_zlib

from reprobuild.fetch.scheduler import fetch
from reprobuild.layers import image_python, schedule
from support.building import no_context
from support.measuring import Printer, medians, timed, timed_with_cpu
from support.stack import CONSOLE, NAME, Stack

pytest_plugins = ["support.shared"]

CHUNK = 1 << 20


@pytest.fixture(scope="module")
def built(stack: Stack) -> Stack:
    stack.image()
    return stack


def test_layers_against_inflating_and_hashing(
    built: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The layers of all wheels, on a Debian layer that is there, with and without their bytecode.

    Beside them: the wheels' bytes inflated and hashed, written nowhere, by a thread a processor. Once, and
    twice, since a layer has two hashes of them: that of each file and that of the tar. What a layer takes
    beyond is zstd, the hash of the blob, and writing it.
    """
    say = Printer(capsys, "layers of the wheels, CUDA 12.1")
    times: dict[str, list[tuple[float, float]]] = defaultdict(list)
    compile_sources = image_python.run_interpreter

    def compiling(*args: Any, **options: Any) -> Path:
        done = []
        times["bytecode"].append(timed_with_cpu(lambda: done.append(compile_sources(*args, **options))))
        return done[0]

    monkeypatch.setattr(schedule, "run_interpreter", compiling)
    inflate = partial(_inflate_and_hash, built.wheels())
    calls: dict[str, Callable[[], object]] = {
        "isal, one sha256": partial(inflate, isal_zlib, hashes=1),
        "isal, two sha256": partial(inflate, isal_zlib, hashes=2),
        "zlib, one sha256": partial(inflate, zlib, hashes=1),
        "layers": partial(built.engine.build, built.lock, no_context),
    }
    for _ in range(3):
        built.forget(debian=False)
        for name, call in calls.items():
            times[name].append(timed_with_cpu(call))
        whole, part = times["layers"][-1], times["bytecode"][-1]
        times["layers without bytecode"].append((whole[0] - part[0], whole[1] - part[1]))
    for title, number in (("wall", 0), ("all processors", 1)):
        series = {name: [pair[number] for pair in pairs] for name, pairs in times.items()}
        say(f"  {title}, {sum(p.stat().st_size for p in built.wheels()) / 1e9:.2f} GB of wheels:")
        say.series(series)
        middle = medians(series)
        for base in ("isal, one sha256", "isal, two sha256", "zlib, one sha256"):
            say(
                f"  to {base}: {middle['layers'] / middle[base]:.2f}, without bytecode "
                f"{middle['layers without bytecode'] / middle[base]:.2f}; goal 1.5"
            )


def test_memory_and_time_of_each_step(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """A cold build, with Debian, watched from outside. The goal of 500 MB is for the build."""
    stack.forget(debian=True)
    say = Printer(capsys, "`reprobuild image`, nothing built before")
    say(f"  what the store lacked was fetched in {stack.fetched:.1f} s")
    done = stack.image()
    for phase in done.phases:
        say(
            f"  {phase.seconds:6.2f} s  {phase.own / 1e6:5.0f} MB itself  {phase.tree / 1e6:5.0f} MB with "
            f"all it runs  {phase.title}"
        )
    say(f"  {done.seconds:6.2f} s  in all")


def test_rebuilds(built: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """An image that is there already, and one with a small package more: building alone, without the test."""
    say = Printer(capsys, "rebuilds")
    changed = [built.locked(name) for name in ("humanize", "tabulate", "idna==3.10")]
    times: dict[str, list[float]] = defaultdict(list)
    for lock in changed:
        fetch(lock, built.store, CONSOLE)
        times["nothing changed"].append(timed(partial(built.engine.build, built.lock, no_context)))
        times["one small package"].append(timed(partial(built.engine.build, lock, no_context)))
    say.series(times)
    say("  goal: about a second")
    for phase in built.image().phases:
        say(f"  the whole command, nothing changed: {phase.seconds:6.2f} s  {phase.title}")


def test_self_test(built: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    say = Printer(capsys, "self-test, torch 2.4.1, CPU")
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(3):
        done = built.run("selftest", NAME, "--gpu", "off", "--json")
        report = json.loads(done.stdout)
        times["the test itself"].append(report["seconds"])
        times["the whole command"].append(done.seconds)
    say.series(times)
    slowest = sorted(report["checks"], key=lambda check: -check["seconds"])[:8]
    say("  slowest: " + ", ".join(f"{check['name']} {check['seconds']:.2f} s" for check in slowest))
    say(f"  its peak memory: {report['peak_memory_bytes'] / 1e6:.0f} MB; goal 15 s")


def test_import_torch_against_a_plain_pip_install(built: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """In the read-only image beside an environment that the image's pip made of the same wheels."""
    say = Printer(capsys, "import torch")
    plain, wheels = built.folder / "plain", built.folder / "wheels"
    for folder in (plain, wheels):
        folder.mkdir()
    for package in built.lock.python:
        (wheels / package.wheel.filename).hardlink_to(built.store.path(package.wheel.sha256))
    own = ["run", "--no-network", "--gpu", "off", "-v", f"{plain}:/plain", "-v", f"{wheels}:/wheels:ro", NAME]
    install = (
        f"/usr/bin/python{built.lock.request.python} -m venv --without-pip /plain/venv"
        " && PIP_CONSTRAINT= /opt/venv/bin/pip"
        " --python /plain/venv/bin/python install --quiet --no-index --no-deps /wheels/*.whl"
    )
    built.run(*own, "--", "sh", "-c", install)
    code = "import time; t = time.perf_counter(); import torch; print(time.perf_counter() - t)"
    runner = built.engine.runner(built.engine.images.find(NAME).digest)
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(8):
        done = built.run(
            *own, "--", "env", "REPROBUILD_DETERMINISM=off", "/plain/venv/bin/python", "-c", code
        )
        times["after pip install"].append(float(done.stdout))
        read_only = runner.run(["/opt/venv/bin/python", "-c", code], timeout=100, gpu=False)
        times["in the image"].append(float(read_only.stdout))
    # The first of each reads the libraries from the disk.
    warm = {name: series[1:] for name, series in times.items()}
    say.series(warm)
    middle = medians(warm)
    say(f"  ratio {middle['in the image'] / middle['after pip install']:.2f}, goal 1")
    subprocess.run(["rm", "-rf", plain, wheels], check=True)


def _inflate_and_hash(wheels: list[Path], library: Any, *, hashes: int) -> None:
    """Read and inflate every member of some wheels once, and hash it once or more often."""

    def one(path: Path) -> None:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            for info in archive.infolist():
                file.seek(info.header_offset + 26)
                lengths = file.read(4)
                skip = int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
                file.seek(skip, os.SEEK_CUR)
                contents = [hashlib.sha256() for _ in range(hashes)]
                inflate, left = library.decompressobj(-15), info.compress_size
                while left:
                    data = file.read(min(CHUNK, left))
                    left -= len(data)
                    if info.compress_type == zipfile.ZIP_DEFLATED:
                        data = inflate.decompress(data)
                    for content in contents:
                        content.update(data)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(one, wheels))
