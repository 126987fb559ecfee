"""Layers are made while files arrive: the same for any order; and nothing is left of what fails."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from reprobuild.errors import BuildError, StorageError
from reprobuild.fetch.arrivals import Arrivals
from reprobuild.fetch.download import Stopped
from reprobuild.fetch.store import Store
from reprobuild.host import page_cache
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers import schedule, unpacked_layers
from reprobuild.layers import wheel_layer as wheel_layer_module
from reprobuild.layers.builder import BuiltLayer, build_layers
from reprobuild.layers.cache import LayerCache
from reprobuild.lock.model import Lock
from support.building import lock_for, without_debian
from support.disk import tiny_disk
from support.wheels import Item, put, simple_wheel, wheel_bytes

LARGE = 2000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(wheel_layer_module, "LARGE", LARGE)
    return without_debian(monkeypatch)


def toys(home: Home) -> Lock:
    """Packages of large and small files: ``b`` and ``c`` lose a small path to ``a``, ``c`` a large one."""
    rng = random.Random(7)
    shared = rng.randbytes(LARGE)
    packages = []
    for name in "abcdef":
        files: dict[str, bytes | str | Item] = {
            f"{name}/__init__.{'py' if name in 'abf' else 'txt'}": f"NAME = {name!r}\n",
            f"{name}/lib.so": rng.randbytes(5 * LARGE),
            f"{name}/small.txt": name,
        }
        if name in "abc":
            files["same/__init__.py"] = "" if name == "a" else f"# {name}\n"
        if name in "ac":
            files["same/large.so"] = shared if name == "a" else rng.randbytes(LARGE + 1)
        packages.append(put(home, name, wheel_bytes(name, "1", files)))
    return lock_for(home, packages)


def build(
    lock: Lock, home: Home, arrivals: Arrivals | None = None, *, lay_out: bool = False
) -> tuple[BuiltLayer, ...]:
    return build_layers(lock, Store(home), Host(home, Console(quiet=True)), arrivals, lay_out=lay_out)


def digests(layers: Sequence[BuiltLayer]) -> list[tuple[str, str]]:
    return [(layer.title, layer.cached.layer.digest) for layer in layers]


def forget(home: Home) -> None:
    for path in home.folder("layers").iterdir():
        path.unlink()


def arriving(lock: Lock, order: Sequence[str]) -> Arrivals:
    """Have all wheels come in some order, from another thread."""
    arrivals = Arrivals(order)

    def work() -> None:
        for sha256 in order:
            arrivals.came(sha256)

    threading.Thread(target=work, daemon=True).start()
    return arrivals


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


def tree(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        owner = (status.st_uid, status.st_gid)
        found[str(path.relative_to(folder))] = (status.st_mode, owner, status.st_mtime_ns, content)
    return found


def test_what_is_laid_out_is_what_unpacking_makes(home: Home, tmp_path: Path) -> None:
    """In all that can be seen of a file; and the roots then have it, so that nothing is unpacked again."""
    umask = os.umask(0o077)
    try:
        layers = build(toys(home), home, lay_out=True)
    finally:
        os.umask(umask)
    wheels = layers[2:-1]
    laid = {y.title: home.folder("roots") / y.cached.layer.diff_id[7:] for y in wheels}
    assert all(folder.is_dir() for folder in laid.values())
    assert len(wheels) == 7
    other = Host(Home(tmp_path / "other"), Console(quiet=True))
    for layer in wheels:
        blob, diff_id = LayerCache(home).blob(layer.cached.layer.digest), layer.cached.layer.diff_id
        unpacked = unpacked_layers.unpack(other, blob, diff_id, lambda _: None)
        assert tree(laid[layer.title]) == tree(unpacked)
        assert laid[layer.title].stat().st_mode == unpacked.stat().st_mode
    sizes = [unpacked_layers.unpacked_sizes(each) for each in (home, other.home)]
    assert {d: sizes[0][d] for d in sizes[1]} == sizes[1]


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


def test_a_layer_that_was_begun_before_its_paths_were_known_leaves_none_behind(home: Home) -> None:
    """``c`` comes first; that one of its large files is another package's is known only later."""
    lock = toys(home)
    wheels = {p.name: p.wheel.sha256 for p in lock.python}
    order = [wheels["pip"], wheels["c"], *(wheels[name] for name in "fedba")]
    layers = {y.title: y.cached for y in build(lock, home, arriving(lock, order), lay_out=True)}
    assert [r.path for r in layers["c 1.0"].records if "same" in r.path] == []
    assert [r.path for r in layers["a 1.0"].records if "same/l" in r.path] == [
        f"opt/venv/lib/python3.{sys.version_info.minor}/site-packages/same/large.so"
    ]


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


def test_a_wheel_that_was_there_is_not_written_again(home: Home, ran: list[str]) -> None:
    lock = toys(home)
    before = build(lock, home)
    ran.clear()
    new = put(
        home, "f", wheel_bytes("f", "1", {"f/__init__.py": "changed = 1\n", "f/lib.so": bytes(9 * LARGE)})
    )
    changed = lock_for(home, [p for p in lock.python if p.name not in ("f", "pip")] + [new])
    after = build(changed, home, arriving(changed, [new.wheel.sha256]))
    different = [a.title for a, b in zip(after, before, strict=True) if a.cached != b.cached]
    assert different == ["f 1.0", "reprobuild's own files"]
    assert ran == ["interpreter"]


def test_a_disk_that_fills_while_layers_are_written(tmp_path: Path) -> None:
    """Nothing half-written is left; with room again, the same layers as elsewhere."""
    rng = random.Random(9)
    wheels = [wheel_bytes(f"p{n}", "1", {f"p{n}/lib.so": rng.randbytes(300_000)}) for n in range(4)]
    elsewhere = Home(tmp_path / "elsewhere")
    expected = digests(
        build(lock_for(elsewhere, [put(elsewhere, f"p{n}", w) for n, w in enumerate(wheels)]), elsewhere)
    )
    with tiny_disk(tmp_path / "small", 2 << 20) as small:
        home = Home(small)
        lock = lock_for(home, [put(home, f"p{n}", w) for n, w in enumerate(wheels)])
        order = [p.wheel.sha256 for p in lock.python]
        with pytest.raises(StorageError, match="No space left on device"):
            build(lock, home, arriving(lock, order), lay_out=True)
        assert [*home.folder("tmp").iterdir()] == []
        subprocess.run(["mount", "-o", "remount,size=40m", str(small)], check=True)
        assert digests(build(lock, home, arriving(lock, order), lay_out=True)) == expected
