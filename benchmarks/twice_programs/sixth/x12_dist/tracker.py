import json
import socket
import struct


def send(sock, obj):
    raw = json.dumps(obj).encode()
    sock.sendall(struct.pack("!I", len(raw)) + raw)


def recv(sock):
    size = struct.unpack("!I", _exact(sock, 4))[0]
    return json.loads(_exact(sock, size))


def _exact(sock, n):
    buf = b""
    while len(buf) < n:
        part = sock.recv(n - len(buf))
        if not part:
            raise ConnectionError("peer closed")
        buf += part
    return buf


class Tracker:
    """Listens on loopback, gives every worker a rank and then sums their vectors in rank order."""

    def __init__(self, world):
        self.world = world
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.links = []

    def rendezvous(self):
        for rank in range(self.world):
            conn, _ = self.listener.accept()  # cause
            hello = recv(conn)
            send(conn, {"rank": rank, "world": self.world})
            self.links.append((conn, hello["task"]))
        return [task for _, task in self.links]

    def allreduce(self):
        vectors = [recv(conn)["v"] for conn, _ in self.links]
        total = [sum(col) for col in zip(*vectors)]
        for conn, _ in self.links:
            send(conn, {"v": total})

    def collect(self):
        return [recv(conn) for conn, _ in self.links]

    def close(self):
        for conn, _ in self.links:
            conn.close()
        self.listener.close()
