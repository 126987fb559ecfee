"""How time and memory grow: with the wheels of an environment, environments, images in the store; start-up.

The wheels are synthetic and come from a server on loopback; Debian is a stand-in, so that the growth shows,
not what is the same for all. Each row says how it grows: 1 is linear, less is better. With
``REPROBUILD_BENCHMARK_OUT`` each test leaves ``growth-NAME.svg`` there.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import log
from pathlib import Path

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.clean import clean_home
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import PythonPackage
from reprobuild.oci.documents import ImageDocuments
from reprobuild.oci.store import ImageStore
from support.building import PYTHON, no_context, without_debian
from support.curves import curves
from support.hosts import quiet_host
from support.measuring import Printer
from support.server import Server, serve
from support.wheels import Item, package, toy_lock, toy_pip, wheel_bytes

FILES, BYTES = 20, 4_000
"""Of a synthetic wheel: its modules, and the bytes of each."""

ROUNDS = 2

COUNTS = (10, 30, 100, 300)


@pytest.fixture
def index() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_debian(monkeypatch: pytest.MonkeyPatch) -> None:
    without_debian(monkeypatch)


def served(index: Server, name: str, data: bytes, version: str = "1.0") -> PythonPackage:
    sha256 = hashlib.sha256(data).hexdigest()
    found = package(name, sha256, len(data), version)
    return replace(found, wheel=replace(found.wheel, url=index.add(f"/{found.wheel.filename}", data)))


def names(count: int) -> list[str]:
    return ["torch", *(f"package{n:03}" for n in range(1, count))]


def synthetic(name: str) -> bytes:
    """Return a wheel whose modules compress about as source does; equal names, equal bytes."""
    words = random.Random(name)
    files: dict[str, bytes | str | Item] = {}
    for number in range(FILES):
        lines, size = [], 0
        while size < BYTES:
            lines.append(f"value_{words.randrange(10**6)} = {words.random()!r}\n")
            size += len(lines[-1])
        files[f"{name}/module_{number}.py"] = "".join(lines)
    return wheel_bytes(name, "1.0", files)


def locked(packages: list[PythonPackage]) -> Lock:
    lock = toy_lock(sorted(packages, key=lambda each: each.name))
    return replace(lock, debian=(), request=replace(lock.request, python=PYTHON))


def measured(call: Callable[[], object]) -> tuple[float, int]:
    """Return processor seconds and the peak of resident bytes of a call, made in a process of its own.

    All processors together, so that other work on the machine moves it little. The peak is never below what
    the test itself has.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            begin = sum(os.times()[:4])
            call()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            os.write(writer, json.dumps([sum(os.times()[:4]) - begin, peak]).encode())
        except BaseException:  # noqa: BLE001 -- the parent sees no report, and the reason is printed here
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        seconds, peak = json.loads(told.read())
    os.waitpid(child, 0)
    return float(seconds), int(peak)


Rows = dict[int, list[tuple[float, int]]]
"""Count → seconds and bytes of each round."""


def pictured(name: str, title: str, series: Mapping[str, Rows]) -> None:
    """Draw the least times, if a folder for it is named."""
    if folder := os.environ.get("REPROBUILD_BENCHMARK_OUT"):
        least = {
            what: {count: max(0.001, min(seconds for seconds, _ in values)) for count, values in rows.items()}
            for what, rows in series.items()
        }
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"growth-{name}.svg").write_text(curves(title, "s", least))


def table(say: Printer, title: str, rows: Rows) -> None:
    """Print the least time and memory of each count, and the exponent from one row to the next."""
    before: tuple[int, float] | None = None
    for count, values in rows.items():
        seconds, peak = min(each for each, _ in values), max(each for _, each in values)
        grows = (
            ""
            if before is None
            else f"  grows by {log(max(seconds, 0.01) / max(before[1], 0.01)) / log(count / before[0]):4.2f}"
        )
        say(f"  {count:4} {title:<28} {seconds:8.3f} s  {peak / 1e6:6.0f} MB{grows}")
        before = count, seconds


def test_wheels_in_an_environment(index: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say = Printer(capsys, "wheels in an environment, from the index to the image")
    pip = served(index, "pip", toy_pip(), "26.0")
    wheels = [served(index, name, synthetic(name)) for name in names(COUNTS[-1])]
    steps: dict[str, Rows] = {"fetch": {}, "build": {}, "nothing changed": {}}
    for run in range(ROUNDS):
        for count in COUNTS:
            home = Home(tmp_path / f"{run}-{count}")
            host, lock = quiet_host(home), locked([pip, *wheels[:count]])
            calls: dict[str, Callable[[], object]] = {
                "fetch": partial(fetch, lock, Store(home), host.console),
                "build": partial(OciEngine(host).build, lock, no_context),
                "nothing changed": partial(OciEngine(host).build, lock, no_context),
            }
            for name, call in calls.items():
                steps[name].setdefault(count, []).append(measured(call))
    for name, rows in steps.items():
        table(say, f"wheels, {name}", rows)
    pictured("wheels", "processor seconds by wheels in an environment", steps)


def test_environments_in_one_store(index: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They share 30 wheels and have one of their own each: what is shared is done once."""
    say = Printer(capsys, "environments that share 30 wheels and have one of their own")
    pip = served(index, "pip", toy_pip(), "26.0")
    wheels = [served(index, name, synthetic(name)) for name in names(50)]
    rows: Rows = {}
    for run in range(ROUNDS):
        for count in (1, 5, 20):
            home = Home(tmp_path / f"{run}-{count}")
            host = quiet_host(home)

            def all_of_them(count: int = count, host: Host = host, home: Home = home) -> None:
                for number in range(count):
                    lock = locked([pip, *wheels[:30], wheels[30 + number]])
                    fetch(lock, Store(home), host.console)
                    OciEngine(host).build(lock, no_context)

            rows.setdefault(count, []).append(measured(all_of_them))
    table(say, "environments", rows)
    pictured("environments", "processor seconds by environments in one store", {"fetch and build": rows})


def test_images_in_the_store_and_start_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of images with 60 layers; the commands are whole processes, and their aims those of `--help` 0.2 s."""
    say = Printer(capsys, "images in the store")
    program = str(Path(sys.executable).with_name("reprobuild"))
    homes = {count: Home(tmp_path / str(count)) for count in (1, 50, 200)}
    for count, home in homes.items():
        _fill(home, count)
    calls: dict[str, Callable[[Home], object]] = {
        "images, find one": lambda home: ImageStore(quiet_host(home)).find("team/torch:0"),
        "images, list them": lambda home: ImageStore(quiet_host(home)).images(),
        "images, clean": lambda home: clean_home(quiet_host(home), everything=False),
    }
    series: dict[str, Rows] = {}
    for title, call in calls.items():
        rows = series[title] = {}
        for _ in range(ROUNDS):
            for count, home in homes.items():
                rows.setdefault(count, []).append(measured(partial(call, home)))
        table(say, title, rows)
    pictured("images", "processor seconds by images in the store", series)
    times: dict[str, list[float]] = {}
    for _ in range(10):
        for count, home in homes.items():
            for words in (["--version"], ["--help"], ["images"]):
                begin = time.perf_counter()
                env = {**os.environ, "REPROBUILD_HOME": str(home.root)}
                subprocess.run([program, *words], env=env, capture_output=True, check=True)
                name = f"reprobuild {words[0]}, {count} images"
                times.setdefault(name, []).append(time.perf_counter() - begin)
    say.series(times)


def _fill(home: Home, count: int) -> None:
    """Put images of 60 layers into a store; 59 of them are shared, and none has a blob."""
    store = ImageStore(quiet_host(home))
    labels = {f"dev.reprobuild.{number}": "x" * 40 for number in range(14)}
    for number in range(count):
        names = [hashlib.sha256(f"{each or -number}".encode()).hexdigest() for each in range(60)]
        diffs = [f"sha256:{name}" for name in names]
        config = json.dumps(
            {
                "config": {"Env": ["NAME=value"] * 20, "Labels": labels},
                "history": [{"created_by": "reprobuild: package 1.0"}] * 60,
                "rootfs": {"diff_ids": diffs, "type": "layers"},
            }
        ).encode()
        digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
        layers = [{"digest": each, "size": 10**6} for each in diffs]
        table = {"annotations": labels, "config": {"digest": digest, "size": len(config)}, "layers": layers}
        image = store.add(ImageDocuments(json.dumps(table).encode(), config))
        store.name(image, f"team/torch:{number}")
