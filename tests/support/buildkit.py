"""The BuildKit inside a Docker daemon, as the builder of buildx's remote driver sees it: gRPC on a TCP port.

The daemon speaks it after an upgrade of ``POST /grpc``, which is how the docker command reaches it.
Source: moby, api/server/router/grpc.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_UPGRADE = b"POST /grpc HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"


@contextmanager
def serve_buildkit(docker_host: str) -> Iterator[str]:
    """Give the address of the BuildKit of the Docker at ``unix://…``."""
    path = docker_host.removeprefix("unix://")
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server, path), daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            # Closing alone would leave the thread in accept().
            server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, path: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = server.accept()
            daemon = _upgraded(path)
            for source, target in ((client, daemon), (daemon, client)):
                threading.Thread(target=_pipe, args=(source, target), daemon=True).start()


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
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
