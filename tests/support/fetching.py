"""Locks of given bytes, a console that counts, and what a store then has."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from reprobuild.fetch.download import Patience
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import DebianPackage, PythonPackage, Wheel
from reprobuild.request.model import Request

QUICK = Patience(pause=0.001, connect=2, silence=5)


class Meter(Console):
    """A console that keeps what it is told, and adds up the bar's steps."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.heard: list[str] = []
        self.total = self.done = 0
        self._lock = threading.Lock()

    def step(self, text: str) -> None:
        self.heard.append(text)

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        self.total = total
        yield self._advance

    def _advance(self, amount: int) -> None:
        with self._lock:
            self.done += amount


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lock_of(wheels: Mapping[str, bytes], debs: Mapping[str, bytes] | None = None) -> Lock:
    """Lock these bytes: wheels by address, Debian packages by name."""
    return Lock(
        request=Request(name="cpu", cuda="cpu"),
        platform="linux/amd64",
        epoch=0,
        python=[
            PythonPackage(
                name=f"p{i}",
                version="1",
                wheel=Wheel(filename=url.rpartition("/")[2], url=url, sha256=sha256(data), size=len(data)),
            )
            for i, (url, data) in enumerate(wheels.items())
        ],
        debian=[
            DebianPackage(
                name=name,
                version="1",
                architecture="amd64",
                archive="debian",
                path=f"pool/main/{name}_1_amd64.deb",
                sha256=sha256(data),
                size=len(data),
            )
            for name, data in (debs or {}).items()
        ],
        variables={},
    )


def check(store: Store, *bodies: bytes) -> None:
    """Assert that the store has these and nothing besides."""
    expected = {store.path(sha256(body)): body for body in bodies}
    found = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    assert expected == found
