"""Layers are made while files arrive: the same for any order; and nothing is left of what fails."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.fetch.arrivals import Arrivals
from reprobuild.fetch.download import Stopped
from reprobuild.fetch.store import Store
from reprobuild.host import page_cache
from reprobuild.host.home import Home
from reprobuild.layers import schedule
from reprobuild.layers import wheel_layer as wheel_layer_module
from support.building import lock_for, without_debian
from support.fixtures import fixtures_of
from support.scheduled import LARGE, arriving, build, digests, toys
from support.wheels import put, simple_wheel

globals().update(fixtures_of("support.scheduled"))


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(wheel_layer_module, "LARGE", LARGE)
    return without_debian(monkeypatch)


def forget(home: Home) -> None:
    for path in home.folder("layers").iterdir():
        path.unlink()


def test_the_layers_are_the_same_for_any_order_and_number_of_threads(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = toys(home)
    expected = digests(build(lock, home))
    wheels = [p.wheel.sha256 for p in lock.python]
    rng = random.Random(3)
    for processors in (1, 2, 8):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, count=processors: set(range(count)))
        forget(home)
        rng.shuffle(wheels)
        fetched = wheels[: rng.randrange(len(wheels) + 1)]
        assert digests(build(lock, home, arriving(lock, fetched), lay_out=rng.random() < 0.5)) == expected
    assert [*home.folder("tmp").iterdir()] == []


@pytest.mark.parametrize("runs_here", [True, False], ids=["run here", "handed on"])
def test_what_nobody_reads_again_is_given_back(
    home: Home, monkeypatch: pytest.MonkeyPatch, *, runs_here: bool
) -> None:
    """The wheels always; the blobs of layers only if no engine is to read them."""
    given: set[Path] = set()

    def fadvise(descriptor: int, start: int, size: int, advice: int) -> None:
        given.add(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(page_cache, "_STEP", LARGE)
    monkeypatch.setattr(os, "posix_fadvise", fadvise)
    lock = toys(home)
    build(lock, home, lay_out=runs_here)
    wheels = {Store(home).path(p.wheel.sha256) for p in lock.python if p.name in "abcdef"}
    assert wheels <= given
    assert bool(given - wheels) == runs_here


@pytest.mark.parametrize("after", [0, 1, 4, 6])
def test_a_file_that_will_not_come_ends_the_work(home: Home, after: int) -> None:
    lock = toys(home)
    arrivals = Arrivals([p.wheel.sha256 for p in lock.python])

    def work() -> None:
        for package in lock.python[:after]:
            arrivals.came(package.wheel.sha256)
        arrivals.fail()

    threading.Thread(target=work, daemon=True).start()
    with pytest.raises(Stopped):
        build(lock, home, arrivals)
    assert [*home.folder("tmp").iterdir()] == []
    assert len(build(lock, home)) == 10


def test_a_bad_wheel_ends_the_work_while_others_are_still_to_come(home: Home) -> None:
    """Without waiting for them, and whatever is at work on the system."""
    bad = put(home, "bad", b"no zip archive")
    lock = lock_for(home, [bad, put(home, "toy", simple_wheel("toy"))])
    arrivals = Arrivals([p.wheel.sha256 for p in lock.python])
    for package in lock.python:
        if package.name != "toy":
            arrivals.came(package.wheel.sha256)
    with pytest.raises(BuildError, match="bad: its wheel cannot be read"):
        build(lock, home, arrivals)
    assert [*home.folder("tmp").iterdir()] == []


def test_the_system_is_made_while_wheels_are_to_come(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    made = threading.Event()
    honest = vars(schedule)["SystemLayers"]

    class Watched(honest):  # type: ignore[misc, valid-type]
        def layers(self) -> object:
            found = super().layers()
            made.set()
            return found

    monkeypatch.setattr(schedule, "SystemLayers", Watched)
    lock = toys(home)
    arrivals = Arrivals([p.wheel.sha256 for p in lock.python])

    def work() -> None:
        assert made.wait(60)
        for package in lock.python:
            arrivals.came(package.wheel.sha256)

    threading.Thread(target=work, daemon=True).start()
    assert len(build(lock, home, arrivals)) == 10
