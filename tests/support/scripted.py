"""A real HTTP server on loopback whose every answer a test writes itself; it speaks TLS to who speaks TLS."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

import trustme

from support.server import listening


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    tls: bool

    @property
    def login(self) -> str | None:
        return self.headers.get("Authorization")


@dataclass(frozen=True)
class Answer:
    """What a request gets. ``pieces``: a body that is sent piece by piece, its length not said."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterable[bytes] | None = None
    cut_at: int | None = None
    """Close the connection after that many bytes of the body."""
    drop: bool = False
    """Close it without a word."""

    @classmethod
    def json(cls, value: object, status: int = 200, **headers: str) -> Answer:
        return cls(status, json.dumps(value).encode(), headers)


@dataclass
class Scripted:
    """A running server."""

    host: str
    log: list[Asked] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the server ends: for answers that wait."""


@contextmanager
def serve_answers(
    answer: Callable[[Asked], Answer], *, certificate: trustme.LeafCert | None = None
) -> Iterator[Scripted]:
    """Run a server that answers what ``answer`` says; with a certificate on the same port over TLS too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if certificate is not None:
        certificate.configure_cert(context)
    served = Scripted("")

    class Handler(_Handler):
        script = staticmethod(answer)
        scripted = served
        tls = context

    with listening(Handler) as httpd:
        served.host = f"127.0.0.1:{httpd.server_address[1]}"
        try:
            yield served
        finally:
            served.ended.set()


class _Handler(BaseHTTPRequestHandler):
    script: Callable[[Asked], Answer]
    scripted: Scripted
    tls: ssl.SSLContext
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        self.speaks_tls = self.request.recv(1, socket.MSG_PEEK) == b"\x16"
        if self.speaks_tls:
            self.request = self.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        if self.speaks_tls:
            self.request.close()

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.command, self.path, dict(self.headers), body, self.speaks_tls)
        self.scripted.log.append(asked)
        answer = type(self).script(asked)
        if answer.drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.pieces is None and "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(answer.body)))
        if answer.pieces is not None:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        if answer.cut_at is not None:
            self.wfile.write(answer.body[: answer.cut_at])
            self.close_connection = True
            return
        self.wfile.write(answer.body)
        for piece in answer.pieces or ():
            self.wfile.write(piece)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = handle_any  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""
