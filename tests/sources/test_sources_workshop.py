"""Wheels of a lock's source packages: built where they are missing, and held to the lock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import BuildFiles, PythonPackage, Wheel
from reprobuild.sources import workshop as module
from reprobuild.sources.workshop import (
    build_locked,
    missing_wheels,
    recipe_of,
    take_over_wheels,
    to_fetch,
    workshop,
)
from support.building import lock_for
from support.python_root import python_root
from support.sdists import sdist, stored
from support.wheels import put, toy_pip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("crun")
    return python_root(tmp_path_factory.mktemp("root"))


@pytest.fixture
def host(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(module, "system_folders", lambda *_: [root])
    return Host(Home(tmp_path / "home"), Console(quiet=True))


def locked(host: Host, body: bytes) -> Lock:
    """Return a lock with one package that is built, as a resolve makes it."""
    source = replace(stored(Store(host.home), "thing", "1.0", body), requires=("pip==26.0",))
    pip = put(host.home, "pip", toy_pip(), "26.0")
    lock = replace(lock_for(host.home, []), debian=(), build=BuildFiles())
    unknown = Wheel(filename="thing-1.0-py3-none-any.whl", url="", sha256="", size=0)
    package = PythonPackage(name="thing", version="1.0", wheel=unknown, source=source)
    lock = replace(lock, python=[pip, package])
    with workshop(lock, host) as shop:
        wheel = shop.build_twice(recipe_of(package, lock, Store(host.home)))
    return replace(lock, python=[pip, replace(package, wheel=wheel)])


def built(lock: Lock) -> Wheel:
    return next(p.wheel for p in lock.python if p.source is not None)


def test_a_missing_wheel_is_built_again_with_the_same_bytes(host: Host) -> None:
    lock, store = locked(host, sdist("thing", "1.0")), Store(host.home)
    assert to_fetch(lock, store) == replace(lock, python=[p for p in lock.python if p.source is None])
    store.remove(built(lock).sha256)
    assert to_fetch(lock, store) == lock
    build_locked(lock, store, host)
    assert store.has(built(lock).sha256, built(lock).size)


def test_a_lock_without_one_is_left_alone(host: Host) -> None:
    lock = replace(lock_for(host.home, []), debian=())
    assert to_fetch(lock, Store(host.home)) is lock
    build_locked(lock, Store(host.home), host)


@pytest.mark.slow
def test_other_bytes_are_refused_and_leave_nothing(host: Host) -> None:
    lock, store = locked(host, sdist("thing", "1.0")), Store(host.home)
    store.remove(built(lock).sha256)
    wheel = replace(built(lock), sha256="0" * 64)
    forged = replace(lock, python=[replace(p, wheel=wheel) if p.source else p for p in lock.python])
    with pytest.raises(
        BuildError, match=r"thing 1\.0: the wheel built here is not the one in the lock: .* equal"
    ):
        build_locked(forged, store, host)
    assert not store.has(built(lock).sha256, built(lock).size)
    build_locked(lock, store, host)


@pytest.mark.slow
def test_a_rebuild_does_not_take_the_store_s_word_for_what_a_source_gives(host: Host) -> None:
    lock, store = locked(host, sdist("thing", "1.0")), Store(host.home)
    build_locked(lock, store, host, anew=True)
    other = put(host.home, "thing", toy_pip(), "1.0").wheel
    wheel = replace(built(lock), sha256=other.sha256, size=other.size)
    forged = replace(lock, python=[replace(p, wheel=wheel) if p.source else p for p in lock.python])
    build_locked(forged, store, host)  # as `image` does: the wheel that the lock names is here
    assert to_fetch(forged, store, anew=True) == forged
    with pytest.raises(BuildError, match=r"thing 1\.0: the wheel built here is not the one in the lock"):
        build_locked(forged, store, host, anew=True)


@pytest.mark.slow
def test_a_wheel_in_a_folder_of_the_user_s_is_taken(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, store = locked(host, sdist("thing", "1.0")), Store(host.home)
    house = tmp_path / "wheelhouse"
    house.mkdir()
    (house / built(lock).filename).write_bytes(store.path(built(lock).sha256).read_bytes())
    store.remove(built(lock).sha256)
    monkeypatch.setenv("UV_FIND_LINKS", str(house))
    monkeypatch.setattr(module.Workshop, "build_again", None)
    assert missing_wheels(lock, store)
    assert not store.has(built(lock).sha256, built(lock).size)  # to ask writes nothing
    take_over_wheels(lock, store)
    build_locked(lock, store, host)
    assert store.has(built(lock).sha256, built(lock).size)
    store.remove(built(lock).sha256)
    (house / built(lock).filename).write_bytes(b"other bytes")
    take_over_wheels(lock, store)
    assert to_fetch(lock, store) == lock
