"""Federated averaging over loopback sockets with client threads and a round-by-round History, in the style of flwrlabs/flower."""
import argparse
import csv
import io
import logging
import pickle
import socket
import struct
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

import h5py
import numpy as np

logging.basicConfig(level=logging.DEBUG, format="%(levelname)s flower %(asctime)s | %(filename)s:%(lineno)d | %(message)s")
log = logging.getLogger("flower")
logging.getLogger("h5py").setLevel(logging.WARNING)
N_FEATURES, N_CLASSES = 24, 5


def send_msg(sock, obj):
    raw = pickle.dumps(obj)
    sock.sendall(struct.pack("!I", len(raw)) + raw)
    return len(raw)


def recv_exact(sock, n):
    buf = io.BytesIO()
    while buf.tell() < n:
        chunk = sock.recv(n - buf.tell())
        if not chunk:
            raise ConnectionError("peer closed")
        buf.write(chunk)
    return buf.getvalue()


def recv_msg(sock):
    (n,) = struct.unpack("!I", recv_exact(sock, 4))
    return pickle.loads(recv_exact(sock, n))


def make_partition(cid, n_train=900, n_test=200):
    """Non-IID shard: every client sees its own class mix and feature shift."""
    base = np.random.default_rng(77)
    W = base.normal(size=(N_FEATURES, N_CLASSES))
    rng = np.random.default_rng([77, cid])
    X = rng.normal(size=(n_train + n_test, N_FEATURES)) + 0.3 * rng.normal(size=N_FEATURES)
    logits = X @ W + rng.gumbel(size=(len(X), N_CLASSES)) * 1.5 + 1.5 * rng.normal(size=N_CLASSES)
    y = logits.argmax(1)
    return (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])


class SoftmaxMLP:
    def __init__(self, params):
        self.W1, self.b1, self.W2, self.b2 = (p.copy() for p in params)

    @staticmethod
    def initial(seed, hidden=32):
        r = np.random.default_rng(seed)
        return [r.normal(size=(N_FEATURES, hidden)) * 0.2, np.zeros(hidden), r.normal(size=(hidden, N_CLASSES)) * 0.2,
                np.zeros(N_CLASSES)]

    def params(self):
        return [self.W1, self.b1, self.W2, self.b2]

    def forward(self, X):
        h = np.tanh(X @ self.W1 + self.b1)
        z = h @ self.W2 + self.b2
        z -= z.max(1, keepdims=True)
        p = np.exp(z)
        return h, p / p.sum(1, keepdims=True)

    def evaluate(self, X, y):
        p = self.forward(X)[1]
        return float(-np.log(p[np.arange(len(y)), y] + 1e-12).mean()), float((p.argmax(1) == y).mean())

    def sgd(self, X, y, lr, batch, epochs, rng):
        for _ in range(epochs):
            order = rng.permutation(len(y))
            for s in range(0, len(y), batch):
                b = order[s:s + batch]
                h, p = self.forward(X[b])
                p[np.arange(len(b)), y[b]] -= 1
                p /= len(b)
                dh = (p @ self.W2.T) * (1 - h ** 2)
                self.W2 -= lr * h.T @ p
                self.b2 -= lr * p.sum(0)
                self.W1 -= lr * X[b].T @ dh
                self.b1 -= lr * dh.sum(0)


class Client(threading.Thread):
    def __init__(self, cid, port):
        super().__init__(name=f"client-{cid}", daemon=True)
        self.cid, self.port = cid, port

    def run(self):
        (X, y), (Xt, yt) = make_partition(self.cid)
        with socket.create_connection(("127.0.0.1", self.port)) as sock:
            send_msg(sock, {"cid": self.cid, "node": uuid.uuid4().hex[:12], "thread": threading.get_ident()})
            while True:
                msg = recv_msg(sock)
                if msg["type"] == "bye":
                    return
                t0 = time.perf_counter()
                model = SoftmaxMLP(msg["params"])
                if msg["type"] == "fit":
                    rng = np.random.default_rng([msg["round"], self.cid])
                    model.sgd(X, y, msg["lr"], msg["batch"], msg["epochs"], rng)
                    res = {"params": model.params(), "n": len(y)}
                else:
                    loss, acc = model.evaluate(Xt, yt)
                    res = {"loss": loss, "accuracy": acc, "n": len(yt)}
                send_msg(sock, {**res, "cid": self.cid, "seconds": time.perf_counter() - t0})


@dataclass
class History:
    losses_distributed: list = field(default_factory=list)
    accuracy: list = field(default_factory=list)

    def __str__(self):
        out = "History (loss, distributed):\n" + "".join(f"\tround {r}: {v}\n" for r, v in self.losses_distributed)
        return out + "History (metrics, distributed, evaluate):\n{'accuracy': " + str(self.accuracy) + "}"


class Server:
    def __init__(self, n_clients):
        self.lsock = socket.create_server(("127.0.0.1", 0))
        self.port = self.lsock.getsockname()[1]
        self.n = n_clients
        self.peers = {}
        self.rows = []

    def wait_for_clients(self):
        hello = []
        for _ in range(self.n):
            conn, addr = self.lsock.accept()
            hello.append((recv_msg(conn), conn, addr))
        for msg, conn, addr in sorted(hello, key=lambda h: h[0]["cid"]):
            self.peers[msg["cid"]] = conn
            log.info("client %d connected as node %s from %s:%d", msg["cid"], msg["node"], *addr)

    def broadcast(self, msg):
        """Send to all clients and wait; results come back keyed by client id, logged as they arrive."""
        q = Queue()

        def talk(cid, conn):
            send_msg(conn, msg)
            q.put(recv_msg(conn))

        threads = [threading.Thread(target=talk, args=item) for item in self.peers.items()]
        for t in threads:
            t.start()
        got = {}
        for _ in threads:
            r = q.get()
            got[r["cid"]] = r
            if msg["type"] == "fit":
                log.debug("received fit result from client %d (%d examples, %.1f ms)", r["cid"], r["n"], 1e3 * r["seconds"])
        for t in threads:
            t.join()
        return [got[c] for c in sorted(got)]

    def fit(self, rounds, seed, **cfg):
        params, hist = SoftmaxMLP.initial(seed), History()
        log.info("Initializing global parameters\n")
        start = time.time()
        log.info("FL starting")
        for rnd in range(1, rounds + 1):
            log.debug("fit_round %d: strategy sampled %d clients (out of %d)", rnd, self.n, self.n)
            t0 = time.time()
            res = self.broadcast({"type": "fit", "round": rnd, "params": params, **cfg})
            total = sum(r["n"] for r in res)
            params = [sum(r["params"][k] * (r["n"] / total) for r in res) for k in range(len(params))]
            fit_s = time.time() - t0
            log.debug("fit_round %d received %d results and 0 failures", rnd, len(res))
            ev = self.broadcast({"type": "evaluate", "round": rnd, "params": params})
            n = sum(r["n"] for r in ev)
            loss = sum(r["loss"] * r["n"] for r in ev) / n
            acc = sum(r["accuracy"] * r["n"] for r in ev) / n
            hist.losses_distributed.append((rnd, loss))
            hist.accuracy.append((rnd, acc))
            self.rows.append({"round": rnd, "loss": loss, "accuracy": acc, "fit_s": round(fit_s, 4),
                              "slowest_client_s": round(max(r["seconds"] for r in res), 4), "ts": time.time()})
            log.info("fit progress: (%d, %s, {'accuracy': %s}, %s)", rnd, loss, acc, time.time() - start)
        log.info("FL finished in %s", time.time() - start)
        return params, hist


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--clients", type=int, default=6)
    ap.add_argument("--rounds", type=int, default=15)
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--lr", type=float, default=0.08)
    ap.add_argument("--seed", type=int, default=9)
    args = ap.parse_args()
    server = Server(args.clients)
    log.info("Starting Flower-like server on port %d, config: rounds=%d", server.port, args.rounds)
    clients = [Client(c, server.port) for c in range(args.clients)]
    for c in clients:
        c.start()
    server.wait_for_clients()
    params, hist = server.fit(args.rounds, args.seed, lr=args.lr, batch=args.batch, epochs=args.epochs)
    for conn in server.peers.values():
        send_msg(conn, {"type": "bye"})
        conn.close()
    for c in clients:
        c.join()
    log.info("app_fit: %s", hist)
    out = Path("fl_results")
    out.mkdir(exist_ok=True)
    with open(out / "rounds.csv", "w", newline="") as f:
        w = csv.DictWriter(f, server.rows[0].keys())
        w.writeheader()
        w.writerows(server.rows)
    with h5py.File(out / "global_model.h5", "w") as f:
        f.attrs["created"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        f.attrs["server"] = f"127.0.0.1:{server.port}"
        for k, p in zip(("W1", "b1", "W2", "b2"), params):
            f.create_dataset(f"params/{k}", data=p)
        f.create_dataset("history/loss", data=np.array([v for _, v in hist.losses_distributed]))
        f.create_dataset("history/fit_seconds", data=np.array([r["fit_s"] for r in server.rows]))
    print(f"final accuracy {hist.accuracy[-1][1]:.4f}, final loss {hist.losses_distributed[-1][1]:.6f}, "
          f"{args.clients} clients, {sum(r['fit_s'] for r in server.rows):.2f}s of fitting")


if __name__ == "__main__":
    main()
