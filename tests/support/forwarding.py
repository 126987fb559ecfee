"""A socket of this machine as an address of a network: a daemon that is reached as one elsewhere is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def forwarded(path: Path) -> Iterator[str]:
    """Give an address ``HOST:PORT`` on loopback whose connections lead to a socket of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server, path), daemon=True).start()
        host, port = server.getsockname()
        yield f"{host}:{port}"
        server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts


def _serve(server: socket.socket, path: Path) -> None:
    with suppress(OSError):
        while True:
            near, _ = server.accept()
            threading.Thread(target=_connect, args=(near, path), daemon=True).start()


def _connect(near: socket.socket, path: Path) -> None:
    with near, socket.socket(socket.AF_UNIX) as far:
        far.connect(str(path))
        copy_both_ways(near, far)


def copy_both_ways(near: socket.socket, far: socket.socket) -> None:
    """Pass on what each of two connections says, until both have ended."""
    back = threading.Thread(target=_copy, args=(far, near), daemon=True)
    back.start()
    _copy(near, far)
    back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    # An end in one direction is passed on; the other may still have something to say.
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
