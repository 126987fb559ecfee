"""A company's proxy on loopback: it demands CONNECT, and opens TLS with a CA of its own."""

from __future__ import annotations

import base64
import socket
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
import trustme

from support.forwarding import copy_both_ways
from support.server import ca_file, listening


@dataclass
class Proxy:
    """A running proxy; get one with `serve_proxy`."""

    url: str
    ca: Path
    asked: list[str] = field(default_factory=list)
    """``HOST:PORT`` of every tunnel."""

    def trust(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let its CA be the only one that this process trusts, whatever the machine's variables name."""
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("SSL_CERT_FILE", str(self.ca))

    @property
    def hosts(self) -> set[str]:
        """Return the hosts that were asked for."""
        return {each.rpartition(":")[0] for each in self.asked}


@contextmanager
def relayed(url: str) -> Iterator[str]:
    """Serve what another server has below an address; yield this one's, which has no TLS."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's name
            """Keep it off the tests' output."""

        def do_GET(self) -> None:
            try:
                with urllib.request.urlopen(url + self.path, timeout=60) as answer:
                    status, body = 200, answer.read()
            except HTTPError as error:
                status, body = error.code, b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with listening(Handler) as httpd:
        yield f"http://127.0.0.1:{httpd.server_address[1]}"


@contextmanager
def serve_proxy(folder: Path, routes: Mapping[str, str], *, login: str = "") -> Iterator[Proxy]:
    """Run it; ``routes``: host → the address of the server, without TLS, that answers for it.

    ``folder`` gets the certificate of its CA. With a login it is part of the URL, and asked for.
    """
    authority = trustme.CA()
    wanted = f"Basic {base64.b64encode(login.encode()).decode()}" if login else None

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's name
            """Keep it off the tests' output."""

        def do_GET(self) -> None:
            self._end(405)

        def do_CONNECT(self) -> None:
            self.close_connection = True
            proxy.asked.append(self.path)
            host = self.path.rpartition(":")[0]
            if wanted not in (None, self.headers["Proxy-Authorization"]):
                self._end(407)
            elif host not in routes:
                self._end(502)
            else:
                self.send_response(200)
                self.end_headers()
                self._open(host)

        def _open(self, host: str) -> None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(host).configure_cert(context)
            there = urlsplit(routes[host])
            with suppress(OSError):
                near = context.wrap_socket(self.connection, server_side=True)
                with near, socket.create_connection((there.hostname, there.port)) as far:
                    copy_both_ways(near, far)

        def _end(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with listening(Handler) as httpd:
        own = f"{login}@" * bool(login)
        proxy = Proxy(f"http://{own}127.0.0.1:{httpd.server_address[1]}", ca_file(authority, folder))
        yield proxy
