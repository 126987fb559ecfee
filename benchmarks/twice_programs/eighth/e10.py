"""https://github.com/flwrlabs/flower/issues/3328 : the order of the (virtual) clients is not the same between runs although all
seeds are set: clients are registered as they happen to connect, so seeded sampling picks others."""
import argparse
import json
import pickle
import random
import socket
import struct
import sys
import threading
import time

import numpy as np
import torch
from torch import nn

CLIENTS = 6
ROUNDS = 5


def send(sock, obj):
    raw = pickle.dumps(obj)
    sock.sendall(struct.pack("!I", len(raw)) + raw)


def recv(sock):
    head = b""
    while len(head) < 4:
        part = sock.recv(4 - len(head))
        if not part:
            return None
        head += part
    size, buf = struct.unpack("!I", head)[0], b""
    while len(buf) < size:
        buf += sock.recv(min(65536, size - len(buf)))
    return pickle.loads(buf)


def make_net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))


def local_data(cid, n=150):
    rs = np.random.RandomState(100 + cid)
    centres = np.random.RandomState(1).randn(3, 10)
    y = rs.choice(3, size=n, p=np.roll([0.7, 0.2, 0.1], cid % 3))
    x = centres[y] + 1.2 * rs.randn(n, 10) + 0.2 * rs.randn(10)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class Client(threading.Thread):
    def __init__(self, cid, port):
        super().__init__(name=f"client-{cid}", daemon=True)
        self.cid, self.port = cid, port
        self.gen = torch.Generator().manual_seed(cid)

    def run(self):
        x, y = local_data(self.cid)
        net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            send(s, {"cid": self.cid, "n": len(x)})
            while True:
                msg = recv(s)
                if msg is None:
                    return
                nn.utils.vector_to_parameters(msg, net.parameters())
                opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
                for _ in range(3):
                    order = torch.randperm(len(x), generator=self.gen)
                    for i in range(0, len(x), 25):
                        rows = order[i:i + 25]
                        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
                        opt.zero_grad()
                        loss.backward()
                        opt.step()
                send(s, (nn.utils.parameters_to_vector(net.parameters()).detach(), len(x), loss.item()))


class ClientManager:
    def __init__(self):
        self.clients = {}

    def register(self, cid, sock):
        self.clients[cid] = sock

    def wait_for(self, server, count):
        while len(self.clients) < count:
            sock, _ = server.accept()
            self.register(recv(sock)["cid"], sock)  # cause

    def sample(self, count):
        available = list(self.clients)  # cause
        return random.sample(available, count)


def aggregate(results):
    total = sum(n for _, n, _ in results)
    return sum(w * (n / total) for w, n, _ in results)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fraction", type=float, default=0.5)
    args = ap.parse_args()
    random.seed(42)
    np.random.seed(42)
    torch.manual_seed(42)
    torch.set_num_threads(1)
    begin = time.time()
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    print("server on port", port, "python", sys.version.split()[0])
    threads = [Client(c, port) for c in range(CLIENTS)]
    for t in threads:
        t.start()
    manager = ClientManager()
    manager.wait_for(server, CLIENTS)
    net = make_net()
    weights = nn.utils.parameters_to_vector(net.parameters()).detach()
    xs, ys = zip(*[local_data(50 + k) for k in range(3)])
    xs, ys = torch.cat(xs), torch.cat(ys)
    history = []
    for rnd in range(ROUNDS):
        chosen = sorted(manager.sample(int(CLIENTS * args.fraction)))
        for cid in chosen:
            send(manager.clients[cid], weights)
        results = [recv(manager.clients[cid]) for cid in chosen]
        weights = aggregate(results)
        nn.utils.vector_to_parameters(weights, net.parameters())
        with torch.no_grad():
            out = net(xs)
            history.append({"round": rnd, "loss": nn.functional.cross_entropy(out, ys).item(), "acc": (out.argmax(1) == ys).float().mean().item()})
        print(history[-1], "%.2f s" % (time.time() - begin))
    for s in manager.clients.values():
        s.close()
    for t in threads:
        t.join()
    with open("fl_history.json", "w") as f:
        json.dump(history, f)


if __name__ == "__main__":
    main()
