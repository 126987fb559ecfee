"""Files of a lock on a server that fails by script.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from reprobuild.errors import FetchError
from reprobuild.fetch.download import CHUNK, Patience
from reprobuild.fetch.scheduler import fetch
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.model import Lock
from support.fetching import QUICK, Meter, sha256
from support.server import Server, serve

BIG = random.Random(1).randbytes(3 * CHUNK + 12_345)


SMALL = b"a small wheel"


@pytest.fixture(autouse=True)
def _own_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Home(tmp_path / "home"))


def fails(lock: Lock, store: Store, patience: Patience = QUICK) -> FetchError:
    with pytest.raises(FetchError) as caught:
        fetch(lock, store, Meter(), patience=patience)
    return caught.value


def leave(store: Store, body: bytes, part: bytes) -> None:
    with store.partial(sha256(body)) as partial:
        assert partial is not None
        partial.file.write(part)


PROGRAM = """
import sys
from pathlib import Path
from reprobuild.host.console import Console
from reprobuild.fetch.scheduler import fetch
from reprobuild.host.home import Home
from reprobuild.lock.model import *
from reprobuild.request.model import Request
from reprobuild.fetch.store import Store
packages = []
for line in sys.stdin:
    url, digest, size = line.split()
    wheel = Wheel(filename=url.rpartition("/")[2], url=url, sha256=digest, size=int(size))
    packages.append(PythonPackage(name=digest, version="1", wheel=wheel))
request = Request(name="cpu", cuda="cpu")
lock = Lock(request=request, platform="linux/amd64", epoch=0, python=packages, debian=[], variables={})
fetch(lock, Store(Home(Path(sys.argv[1]))), Console())
"""


@contextmanager
def fetching(store: Store, wheels: Mapping[str, bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Fetch in a process of its own; it is killed at the end if it still runs."""
    lines = "".join(f"{url} {sha256(body)} {len(body)}\n" for url, body in wheels.items())
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(store.root.parent)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(lines.encode())
        process.stdin.close()
        process.stdin = None
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(12_000):
        if condition():
            return
        time.sleep(0.005)
    pytest.fail("it did not come to that within a minute")


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()
