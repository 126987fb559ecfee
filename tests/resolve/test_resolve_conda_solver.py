"""What a channel may cost: its list of packages is a stranger's. Solving itself: test_lock_conda_lock.py."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import zstandard

from reprobuild.errors import HostError, ResolveError
from reprobuild.resolve import conda_solver
from support.server import listening

LARGEST = 8 << 20
_EMPTY = b'{"packages": {}, "packages.conda": {}, "info": {"subdir": "linux-64"}}'


@contextmanager
def channel(answer: Callable[[BaseHTTPRequestHandler, threading.Event], None]) -> Iterator[str]:
    """Serve a channel that has nothing but a list of packages, zstd and plain, which ``answer`` writes."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Keep it off the tests' output."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            if not self.path.endswith(("/repodata.json", "/repodata.json.zst")):
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            if self.command == "GET":
                with suppress(ConnectionError):
                    answer(self, over)

    with listening(Handler) as server:
        try:
            yield f"http://127.0.0.1:{server.server_port}/channel"
        finally:
            over.set()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(conda_solver, "LARGEST_LIST", LARGEST)
    return tmp_path / "cache"


def solve(url: str) -> None:
    conda_solver.solve(
        ["python"], channels=[url], platform="linux-64", virtual={}, constraints=[], as_of=None
    )


def packed(handler: BaseHTTPRequestHandler, text: bytes) -> bytes:
    return zstandard.compress(text) if handler.path.endswith(".zst") else text


def bomb(handler: BaseHTTPRequestHandler, _: threading.Event) -> None:
    handler.wfile.write(packed(handler, _EMPTY[:-1] + b" " * (1 << 25) + b"}"))


def endless(handler: BaseHTTPRequestHandler, over: threading.Event) -> None:
    packer = zstandard.ZstdCompressor().compressobj()
    text = _EMPTY[:-1]
    while not over.is_set():
        if handler.path.endswith(".zst"):
            text = packer.compress(text) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        handler.wfile.write(text)
        text = b" " * (1 << 20)


@pytest.mark.parametrize("answer", [bomb, endless])
def test_a_list_without_end_is_not_taken(
    answer: Callable[[BaseHTTPRequestHandler, threading.Event], None], cache: Path
) -> None:
    with channel(answer) as url, pytest.raises(ResolveError) as refused:
        solve(url)
    assert "a conda channel's list of packages is larger than 8 MiB unpacked" in refused.value.message
    assert sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) <= 4 * LARGEST


def test_a_channel_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def drip(handler: BaseHTTPRequestHandler, over: threading.Event) -> None:
        for byte in packed(handler, _EMPTY)[:-1]:
            handler.wfile.write(bytes([byte]))
            if over.wait(0.2):
                return
        over.wait()

    monkeypatch.setattr(conda_solver, "MOST_SECONDS", 3)
    with (
        channel(drip) as url,
        pytest.raises(ResolveError, match="within 3 s") as caught,
    ):
        solve(url)
    assert f"the conda packages were not resolved ({url})" in caught.value.message


def test_a_solver_that_takes_the_machine_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_MEMORY", "4M")  # less than Python with py-rattler takes

    def answer(handler: BaseHTTPRequestHandler, _: threading.Event) -> None:
        handler.wfile.write(packed(handler, _EMPTY))

    with channel(answer) as url, pytest.raises(ResolveError, match=r"took more than 4 MiB of memory"):
        solve(url)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 1_000_000,
        b'{"packages": []}',
        b'{"packages": {"a-1-0.conda": {"name": 5}}}',
        b'{"packages": {"a-1-0.tar.bz2": {"name": "python", "version": "1", "size": -1, "sha256": "00"}}}',
        b"",
        b"\xff\xfe",
    ],
)
def test_a_list_that_is_none(text: bytes) -> None:
    def answer(handler: BaseHTTPRequestHandler, _: threading.Event) -> None:
        handler.wfile.write(packed(handler, text))

    with channel(answer) as url, pytest.raises(ResolveError):
        solve(url)


def test_an_alias_that_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_CHANNEL_ALIAS", "http://[x")
    with pytest.raises(HostError, match=r"channel_alias is 'http://.x', which is not a URL"):
        solve("forge")
