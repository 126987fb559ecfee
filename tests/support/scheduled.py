"""Builds of toy packages whose files arrive in any order: fixtures.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from reprobuild.fetch.arrivals import Arrivals
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.builder import BuiltLayer, build_layers
from reprobuild.lock.model import Lock
from support.building import lock_for
from support.wheels import Item, put, wheel_bytes

LARGE = 2000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


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


def arriving(lock: Lock, order: Sequence[str]) -> Arrivals:
    """Have all wheels come in some order, from another thread."""
    arrivals = Arrivals(order)

    def work() -> None:
        for sha256 in order:
            arrivals.came(sha256)

    threading.Thread(target=work, daemon=True).start()
    return arrivals
