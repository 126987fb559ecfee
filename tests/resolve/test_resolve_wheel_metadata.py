"""Reading parts of a wheel on a server that is a stranger: what it may send is bounded."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests

from reprobuild.errors import ResolveError
from reprobuild.resolve import wheel_metadata
from reprobuild.resolve.gpu_targets import gpu_targets
from reprobuild.resolve.wheel_metadata import LARGEST, ranged_file, requirements
from support.server import listening

SIZE = 10 * 1024 * 1024


class Endless(BaseHTTPRequestHandler):
    """Says that a file has ten megabytes, and answers each request for a part with more than that part."""

    sent = 0
    url = ""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(206)
        self.end_headers()
        try:
            while type(self).sent < 2 * SIZE:
                type(self).sent += self.wfile.write(bytes(64 * 1024))
        except OSError:
            pass  # the reader has had enough

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endless() -> Iterator[type[Endless]]:
    class Own(Endless):
        """Counts for itself: the server of a test before may be sending still."""

    with listening(Own) as server:
        Own.url = f"http://127.0.0.1:{server.server_address[1]}/a-1-py3-none-any.whl"
        yield Own


def test_an_answer_that_goes_on_is_not_read_to_its_end(endless: type[Endless]) -> None:
    with requests.Session() as session:
        file = ranged_file(endless.url, session)
        with pytest.raises(ValueError, match="wrong length"):
            file.read(100)
    assert endless.sent < SIZE


def test_so_much_of_a_wheel_is_read_and_no_more(
    endless: type[Endless], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel_metadata, "_MOST", 300_000)
    with requests.Session() as session, pytest.raises(ValueError, match="more than"):
        ranged_file(endless.url, session).read(400_000)
    assert endless.sent == 0


def wheel_with(tmp_path: Path, name: str, size: int) -> Path:
    file = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, bytes(size))
    return file


def test_metadata_that_inflates_without_end_is_refused(tmp_path: Path) -> None:
    file = wheel_with(tmp_path, "a-1.dist-info/METADATA", LARGEST + 1)
    package: Any = SimpleNamespace(url=file.as_uri(), filename=file.name)
    with requests.Session() as session, pytest.raises(ResolveError, match="is larger than"):
        requirements(cast("Any", package), session)


def test_a_header_that_inflates_without_end_names_no_gpu(tmp_path: Path) -> None:
    file = wheel_with(tmp_path, "torch/include/ATen/cuda/CUDAConfig.h", LARGEST + 1)
    with requests.Session() as session:
        assert gpu_targets(file.as_uri(), session) == ()
