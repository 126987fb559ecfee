"""A real HTTP or HTTPS server on loopback that fails by script, and keeps a log of what was asked of it."""

from __future__ import annotations

import base64
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trustme

CHUNK = 1 << 16


@dataclass(kw_only=True)
class Page:
    """What one path answers, and what goes wrong with it."""

    body: bytes = b""
    status: int = 200
    first: tuple[int, ...] = ()
    """Statuses of the first answers, before the real one."""
    retry_after: str | None = None
    content_type: str = "application/octet-stream"
    cut_at: int | None = None
    """Break the connection after that many bytes of the body …"""
    cuts: int = 1
    """… in that many answers."""
    claims_cut: bool = False
    """Whether Content-Length is then that of what is sent, as of a proxy that cuts."""
    stall_at: int | None = None
    """Send nothing more after that many bytes, until the server ends."""
    stalled: bool = False
    """Whether an answer has come to that."""
    rate: float | None = None
    """Bytes a second."""
    ranges: bool = True
    wrong_range: bool = False
    """Answer a range request with the bytes from the start, as 206."""
    length: bool = True
    """Send Content-Length; without it the end of the connection is the end of the body."""
    location: str | None = None
    login: str | None = None
    """``user:password`` that is asked for."""
    before_body: Callable[[], None] | None = None


@dataclass(frozen=True)
class Hit:
    """One request and how it was answered."""

    path: str
    range: str | None
    status: int
    host: str


@dataclass
class Server:
    """A running server; get one with `serve`. As a proxy it answers for every host out of its own pages."""

    url: str
    pages: dict[str, Page] = field(default_factory=dict)
    log: list[Hit] = field(default_factory=list)
    proxy_login: str | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def add(self, path: str, body: bytes = b"", **faults: Any) -> str:
        """Serve ``body`` at ``path``; return the address."""
        self.pages[path] = Page(body=body, **faults)
        return self.url + path

    def hits(self, path: str) -> list[Hit]:
        """Return the requests for a path, in order."""
        return [hit for hit in self.log if hit.path == path]


@contextmanager
def serve(
    *, certificate: trustme.LeafCert | None = None, clients: trustme.CA | None = None
) -> Iterator[Server]:
    """Run a server on 127.0.0.1, over TLS with a certificate; for clients of a CA only, where given."""

    class Handler(_Handler):
        server_object: Server

    httpd = Httpd(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificate is not None:
        scheme = "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        if clients is not None:
            clients.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        # Not at accept, where a client that never speaks would hold up all others.
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True, do_handshake_on_connect=False)
    server = Server(f"{scheme}://127.0.0.1:{httpd.server_address[1]}")
    Handler.server_object = server
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def ca_file(ca: trustme.CA, folder: Path) -> Path:
    """Write the CA's certificate into a folder; return the file."""
    path = folder / "ca.pem"
    ca.cert_pem.write_to_path(path)
    return path


class Httpd(ThreadingHTTPServer):
    """A server of HTTP that says nothing of its own."""

    daemon_threads = True
    request_queue_size = 64  # a full queue costs the client a second

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a client. Headers and body are two writes: the second would wait 40 ms for the first."""
        client, address = super().get_request()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what some tests are about; what else goes wrong fails them anyway."""


@contextmanager
def listening(handler: Any) -> Iterator[Httpd]:
    """Serve requests on loopback during the block, each by a handler of its own."""
    httpd = Httpd(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield httpd
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server_object: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        """Keep it off the tests' output."""

    def do_CONNECT(self) -> None:
        """Refuse: no test has a tunnel, only its refusal."""
        self._short(407 if self.server_object.proxy_login else 501)

    def do_HEAD(self) -> None:
        self._short(200 if urlsplit(self.path).path in self.server_object.pages else 404)

    def do_GET(self) -> None:
        server = self.server_object
        path = urlsplit(self.path).path
        page = server.pages.get(path, Page(status=404))
        status = self._status(page)
        start = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if status == 200 and asked and page.ranges:
            status, start = 206, int(asked[1])
            if start >= len(page.body):
                status = 416
        server.log.append(Hit(path, self.headers.get("Range"), status, self.headers.get("Host", "")))
        if status not in (200, 206):
            self._short(status, page)
            return
        if page.wrong_range:
            start = 0
        self._head(page, status, start)
        if page.before_body is not None:
            page.before_body()
        self._body(page, page.body[start:])

    def _status(self, page: Page) -> int:
        if self._lacks("Proxy-Authorization", self.server_object.proxy_login):
            return 407
        if self._lacks("Authorization", page.login):
            return 401
        if page.first:
            status, *rest = page.first
            page.first = tuple(rest)
            return status
        return 302 if page.location else page.status

    def _lacks(self, header: str, login: str | None) -> bool:
        expected = "Basic " + base64.b64encode((login or "").encode()).decode()
        return login is not None and self.headers.get(header) != expected

    def _short(self, status: int, page: Page | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if page is not None and page.location:
            self.send_header("Location", page.location)
        if page is not None and page.retry_after is not None:
            self.send_header("Retry-After", page.retry_after)
        if status == 401:
            self.send_header("WWW-Authenticate", "Basic")
        self.end_headers()

    def _head(self, page: Page, status: int, start: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", page.content_type)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(page.body) - 1}/{len(page.body)}")
        if page.length:
            cut = page.cut_at if page.claims_cut and page.cuts > 0 else None
            self.send_header("Content-Length", str(cut or len(page.body) - start))
        else:
            self.send_header("Connection", "close")
        self.end_headers()

    def _body(self, page: Page, body: bytes) -> None:
        cut = None
        if page.cut_at is not None and page.cuts > 0:
            page.cuts -= 1
            cut = page.cut_at
        for begin in range(0, len(body), CHUNK):
            chunk = body[begin : begin + CHUNK]
            if page.stall_at is not None and begin + len(chunk) > page.stall_at:
                page.stalled = True
                self.server_object.ended.wait()
                break
            if cut is not None and begin + len(chunk) > cut:
                self.wfile.write(chunk[: cut - begin])
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_WR)
                return
            self.wfile.write(chunk)
            if page.rate is not None:
                time.sleep(len(chunk) / page.rate)
