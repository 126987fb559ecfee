"""A real docker-registry on loopback, and a gate before it that fails by script."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Literal, cast

import requests
import trustme

from conftest import needs
from support.server import listening

USER, PASSWORD = "team", "open sesame"
_HTPASSWD = "team:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n"
"""As `htpasswd -nbB` writes it, the only form that docker-registry takes."""

Fault = Literal["drop"] | int


@contextmanager
def serve_registry(
    folder: Path, *, login: bool = False, read_only: bool = False, authority: trustme.CA | None = None
) -> Iterator[str]:
    """Start a registry that keeps its blobs below a folder; give its host and port."""
    needs("docker-registry")
    folder.mkdir(exist_ok=True)
    host = f"127.0.0.1:{_free_port()}"
    settings = [
        "version: 0.1",
        "log: {level: error}",
        "storage:",
        f"  filesystem: {{rootdirectory: {folder / 'data'}}}",
        f"  maintenance: {{readonly: {{enabled: {str(read_only).lower()}}}}}",
        "http:",
        f"  addr: {host}",
    ]
    if authority is not None:
        issued = authority.issue_cert("127.0.0.1")
        issued.private_key_pem.write_to_path(folder / "key.pem")
        issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
        settings.append(f"  tls: {{certificate: {folder / 'cert.pem'}, key: {folder / 'key.pem'}}}")
    if login:
        (folder / "htpasswd").write_text(_HTPASSWD)
        settings.append(f"auth: {{htpasswd: {{realm: here, path: {folder / 'htpasswd'}}}}}")
    (folder / "config.yml").write_text("\n".join(settings))
    with subprocess.Popen(
        ["docker-registry", "serve", str(folder / "config.yml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait(host, process)
            yield host
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(host: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "docker-registry ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(host.rpartition(":")[2]))) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("docker-registry does not listen")


def tags(host: str, repository: str) -> list[str]:
    """Return the tags of a repository, asked for without reprobuild; none when it is not there."""
    answer = requests.get(f"http://{host}/v2/{repository}/tags/list", timeout=10)
    return [] if answer.status_code == 404 else list(answer.json()["tags"] or ())


@dataclass
class Gate:
    """A server that hands requests on to a registry, but for those that it answers itself."""

    host: str
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """By ``METHOD path`` as a regular expression: what the next such requests get in place of an answer."""
    log: list[str] = field(default_factory=list)
    token: str | None = None
    """With it, requests need it as a bearer; ``/token`` gives it to whoever logs in as the team."""
    scopes: list[str] = field(default_factory=list)

    def fault(self, line: str) -> Fault | None:
        for pattern, left in self.faults.items():
            if left and re.fullmatch(pattern, line):
                return left.pop(0)
        return None


@contextmanager
def gate_before(registry: str) -> Iterator[Gate]:
    """Start a gate before a registry."""
    gate = Gate("")
    with listening(_handler(gate, registry)) as server:
        gate.host = f"127.0.0.1:{server.server_address[1]}"
        yield gate


def _handler(gate: Gate, registry: str) -> type[BaseHTTPRequestHandler]:  # noqa: C901 -- a class in it
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            path, _, query = self.path.partition("?")
            gate.log.append(f"{self.command} {path}")
            size = int(self.headers.get("Content-Length") or 0)
            match gate.fault(f"{self.command} {path}"):
                case "drop":
                    self.rfile.read(size // 2)
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                case int(status):
                    self.rfile.read(size)
                    self.say(status, b"busy")
                case None if gate.token is None or not self.kept_out(path, query):
                    self.hand_on(self.rfile.read(size))

        def kept_out(self, path: str, query: str) -> bool:
            assert gate.token is not None
            if path == "/token":
                gate.scopes.append(query)
                wanted = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
                good = self.headers.get("Authorization") == f"Basic {wanted}"
                self.say(200 if good else 401, json.dumps({"token": gate.token}).encode() if good else b"")
                return True
            if self.headers.get("Authorization") == f"Bearer {gate.token}":
                return False
            challenge = f'Bearer realm="http://{gate.host}/token",service="here",scope="x"'
            self.say(401, b"", ("WWW-Authenticate", challenge))
            return True

        def hand_on(self, body: bytes) -> None:
            headers = {k: v for k, v in self.headers.items() if k.lower() != "authorization"}
            with closing(http.client.HTTPConnection(registry)) as onward:
                onward.request(self.command, self.path, body, headers)
                answer = onward.getresponse()
                said = answer.read()
            kept = [
                (k, v) for k, v in answer.getheaders() if k.lower() not in ("content-length", "connection")
            ]
            length = answer.getheader("Content-Length") or str(len(said))
            self.send_response_only(answer.status)
            for name, value in [*kept, ("Content-Length", length)]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def say(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
            self.send_response_only(status)
            for name, value in [*headers, ("Content-Length", str(len(body)))]:
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = handle_any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    return cast("type[BaseHTTPRequestHandler]", Handler)
