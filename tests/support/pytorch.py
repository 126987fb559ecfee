"""PyTorch's own index on loopback, where uv's torch backends find it: behind a proxy that answers for it.

uv has its addresses built in, so the one honest way in is the one that a company has: a proxy that opens TLS
with a CA which the machine trusts. The layout is that of the real one: HTML pages under ``/whl/cu118/NAME/``,
local versions, links with and without a hash, no sizes and no dates.
"""

from __future__ import annotations

import html
import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import trustme

from support.index import File, wheel
from support.server import listening


@dataclass
class PyTorch:
    """The index; get one with `serve_pytorch`."""

    proxy: str
    ca: Path
    folders: dict[str, list[File]] = field(default_factory=dict)
    """Backend, as ``cu118`` → its files."""
    log: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, host and path of every request."""

    def add(self, backend: str, project: str, version: str, *, tag: str, **more: Any) -> File:
        """Put a wheel into a folder of the index."""
        requires = more.pop("requires", ())
        body = more.pop("body", None) or wheel(project, version, requires=requires)
        name = f"{project.replace('-', '_')}-{version}-{tag}.whl"
        file = File(project=project, name=name, body=body, uploaded=None, **more)
        self.folders.setdefault(backend, []).append(file)
        return file

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Return status, content type and body."""
        parts = path.strip("/").split("/")
        if len(parts) != 3 or parts[0] != "whl":
            return 404, "text/plain", b""
        files = self.folders.get(parts[1], [])
        page = [file for file in files if file.project == parts[2]]
        if page:
            return 200, "text/html", "".join(self._anchor(parts[1], file) for file in page).encode()
        for file in files:
            if parts[2] == file.name:
                return 200, "binary/octet-stream", file.body
            if parts[2] == f"{file.name}.metadata" and file.metadata == "served":
                return 200, "binary/octet-stream", file.text
        # The real one lies in a store of objects, which has no other word for what it lacks.
        return 403, "application/xml", b"<Error/>"

    def _anchor(self, backend: str, file: File) -> str:
        link = f"/whl/{backend}/{quote(file.name)}" + (f"#sha256={file.sha256}" if file.hashed else "")
        return f'<a href="{html.escape(link)}">{html.escape(file.name)}</a><br/>\n'


@contextmanager
def serve_pytorch(folder: Path) -> Iterator[PyTorch]:
    """Run it on 127.0.0.1; ``folder`` gets the certificate of its CA."""
    authority = trustme.CA()
    ca = folder / "proxy-ca.pem"
    authority.cert_pem.write_to_path(ca)

    class Handler(_Handler):
        index: PyTorch
        issuer = authority

    with listening(Handler) as httpd:
        Handler.index = PyTorch(f"http://127.0.0.1:{httpd.server_address[1]}", ca)
        yield Handler.index


class _Handler(BaseHTTPRequestHandler):
    index: PyTorch
    issuer: trustme.CA
    host = ""
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        """Keep it off the tests' output."""

    def do_CONNECT(self) -> None:
        """Open the tunnel and stay at its end, as the host that was asked for."""
        self.host, _, port = self.path.rpartition(":")
        self.send_response(200)
        self.end_headers()
        if not self.host.endswith(".pytorch.org"):
            self._pass_on(int(port))
            return
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.issuer.issue_cert(self.host).configure_cert(context)
        try:
            self.connection = context.wrap_socket(self.connection, server_side=True)
        except (ssl.SSLError, OSError):
            self.close_connection = True
            return
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
        self.close_connection = False

    def _pass_on(self, port: int) -> None:
        """Be an ordinary proxy for other hosts, which a test of the real index needs."""
        self.close_connection = True
        with socket.create_connection((self.host, port)) as other:
            ends = {self.connection: other, other: self.connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    ends[end].sendall(data)

    def finish(self) -> None:
        """Close what `do_CONNECT` has put in the place of the server's socket."""
        super().finish()
        self.connection.close()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.index.log.append((self.command, self.host, path))
        status, kind, body = self.index.answer(path)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
