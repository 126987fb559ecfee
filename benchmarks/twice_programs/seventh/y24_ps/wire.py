import io
import struct

import torch


def send(sock, **message):
    buf = io.BytesIO()
    torch.save(message, buf)
    data = buf.getvalue()
    sock.sendall(struct.pack("!I", len(data)) + data)


def receive(sock):
    head = _exactly(sock, 4)
    if head is None:
        return None
    data = _exactly(sock, struct.unpack("!I", head)[0])
    return torch.load(io.BytesIO(data), weights_only=True)


def _exactly(sock, n):
    parts = bytearray()
    while len(parts) < n:
        chunk = sock.recv(n - len(parts))
        if not chunk:
            return None
        parts += chunk
    return bytes(parts)
