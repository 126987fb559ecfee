import os
import socket

import numpy as np

from .tracker import recv, send


def load_partition(task, rows=400, dim=12):
    rng = np.random.default_rng(1000 + task)
    x = rng.normal(size=(rows, dim)) * (1.0 + 0.3 * task)
    w = np.random.default_rng(7).normal(size=dim)
    y = (x @ w + rng.normal(size=rows) > 0).astype(float)
    return x, y


def run(task, port, rounds):
    x, y = load_partition(task)
    sock = socket.create_connection(("127.0.0.1", port))
    send(sock, {"task": task, "pid": os.getpid()})
    info = recv(sock)
    rng = np.random.default_rng(50 + info["rank"])
    w = np.zeros(x.shape[1])
    for _ in range(rounds):
        idx = rng.choice(len(x), 40, replace=False)
        p = 1.0 / (1.0 + np.exp(-(x[idx] @ w)))
        grad = x[idx].T @ (p - y[idx]) / len(idx)
        send(sock, {"v": grad.tolist()})
        w -= 0.1 * np.array(recv(sock)["v"]) / info["world"]
    p = 1.0 / (1.0 + np.exp(-(x @ w)))
    send(sock, {"task": task, "weights": w.tolist(), "accuracy": float(((p > 0.5) == (y > 0.5)).mean())})
    sock.close()
