"""Answers of strangers, cut and altered.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from hypothesis import strategies as st

from support.server import listening

Answer = tuple[int, Mapping[str, str], bytes]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["linux", "sha256:" + "0" * 64, "../../etc/passwd", "a" * 500, 10**400, -1, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


_DEEP = b"[" * 1_500


class Stranger:
    """A server on loopback that gives scripted answers by path, else 404."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        stranger = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Keep it off the tests' output."""

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                status, headers, body = stranger.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    with suppress(ConnectionError):
                        self.wfile.write(body)

        self.handler = Handler
        self.host = ""


@pytest.fixture(scope="module")
def stranger() -> Iterator[Stranger]:
    made = Stranger()
    with listening(made.handler) as server:
        made.host = f"127.0.0.1:{server.server_port}"
        yield made


@st.composite
def altered(draw: st.DrawFn, document: Any) -> Any:
    """A document in which a value somewhere is another, is missing, or has company."""
    found = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 2))):
        here = found
        while isinstance(here, dict | list) and here:
            key = draw(st.sampled_from(sorted(here) if isinstance(here, dict) else list(range(len(here)))))
            below = here[key]
            if isinstance(below, dict | list) and below and draw(st.booleans()):
                here = below
                continue
            if draw(st.booleans()):
                here[key] = draw(_VALUES)
            else:
                del here[key]
            break
    return found


def written(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")
