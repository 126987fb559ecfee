"""The BuildKit inside a Docker daemon, as the builder of buildx's remote driver sees it: gRPC on a TCP port.

The daemon speaks it after an upgrade of ``POST /grpc``, which is how the docker command reaches it.
Source: moby, api/server/router/grpc.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_UPGRADE = b"POST /grpc HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"


@contextmanager
def serve_buildkit(docker_host: str) -> Iterator[str]:
    """Give the address of the BuildKit of the Docker at ``unix://…``."""

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with _upgraded(docker_host.removeprefix("unix://")) as daemon:
                back = threading.Thread(target=_pipe, args=(daemon, self.request))
                back.start()
                _pipe(self.request, daemon)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _upgraded(path: str) -> socket.socket:
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(path)
    daemon.sendall(_UPGRADE)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = daemon.recv(1)
        assert byte, head
        head += byte
    assert b" 101 " in head.splitlines()[0], head
    return daemon


def _pipe(source: socket.socket, target: socket.socket) -> None:
    """Hand bytes on until one side is gone, and tell both."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
