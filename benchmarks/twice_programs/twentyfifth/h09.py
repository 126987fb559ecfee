"""Distributed pricing of baskets: a coordinator and a mesh of workers.

Starts worker processes that connect to the coordinator over loopback sockets.
The coordinator places every basket on a worker by a hash of its name; a worker
simulates its baskets with the random stream of its slot, on the scenarios that
it has prepared, and sends the estimates back.  The coordinator writes one table
with all estimates and the load of each slot.

Modelled on: https://github.com/pathosDev/actor-ts/issues/1573
"""
import csv
import os
import subprocess
import sys
import time
from multiprocessing.connection import Client, Listener

import numpy as np

WORKERS = 9
BASKETS = 180
PATHS = 6000
ASSETS = 8
KEY = b"mesh"


def fnv1a(text):
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def make_baskets():
    rng = np.random.default_rng(1573)
    baskets = []
    for i in range(BASKETS):
        weights = rng.dirichlet(np.ones(ASSETS))
        baskets.append((f"basket-{i:04d}", weights, float(rng.uniform(85, 120))))
    return baskets


class WorkerNode:
    """Runs in a process of its own, see the end of the file."""

    def __init__(self, slot):
        self.slot = slot
        self.rng = np.random.default_rng([2024, slot])
        mixing = np.random.default_rng(11).normal(size=(ASSETS, ASSETS))
        covariance = mixing @ mixing.T / ASSETS * 0.03 + np.eye(ASSETS) * 0.01
        self.factor = np.linalg.cholesky(covariance)

    def price(self, weights, strike):
        shocks = self.rng.normal(size=(PATHS, ASSETS)) @ self.factor.T
        final = 100.0 * np.exp(shocks - 0.5 * (self.factor ** 2).sum(axis=1))
        payoff = np.maximum(final @ weights - strike, 0.0)
        return float(payoff.mean()), float(payoff.std() / PATHS ** 0.5)

    def serve(self, port):
        with Client(("127.0.0.1", port), authkey=KEY) as link:
            link.send(("ready", self.slot))
            while True:
                task = link.recv()
                if task is None:
                    break
                name, weights, strike = task
                link.send((name, self.price(weights, strike)))


class Coordinator:
    def __init__(self, count):
        self.count = count
        self.listener = Listener(("127.0.0.1", 0), backlog=count, authkey=KEY)
        self.mesh = []
        self.processes = []

    def start(self):
        port = str(self.listener.address[1])
        for slot in range(self.count):
            command = [sys.executable, os.path.abspath(__file__), "--worker", str(slot), port]
            self.processes.append(subprocess.Popen(command))
        while len(self.mesh) < self.count:
            link = self.listener.accept()
            kind, slot = link.recv()
            if kind != "ready":
                raise RuntimeError(f"unexpected message {kind!r}")
            self.mesh.append((slot, link))  # cause

    def place(self, name):
        return fnv1a(name) % len(self.mesh)

    def run(self, baskets):
        queues = [[] for _ in self.mesh]
        for basket in baskets:
            queues[self.place(basket[0])].append(basket)
        estimates = {}
        load = {}
        longest = max(map(len, queues))
        for turn in range(longest):
            active = [i for i, waiting in enumerate(queues) if turn < len(waiting)]
            for i in active:
                self.mesh[i][1].send(queues[i][turn])
            for i in active:
                slot, link = self.mesh[i]
                name, estimate = link.recv()
                estimates[name] = estimate
                load[slot] = load.get(slot, 0) + 1
        return estimates, load

    def stop(self):
        for _, link in self.mesh:
            link.send(None)
        for process in self.processes:
            process.wait(timeout=20)
        for _, link in self.mesh:
            link.close()
        self.listener.close()


def main():
    tick = time.perf_counter()
    coordinator = Coordinator(WORKERS)
    coordinator.start()
    print(len(coordinator.mesh), "workers joined")
    baskets = make_baskets()
    try:
        estimates, load = coordinator.run(baskets)
    finally:
        coordinator.stop()
    print(f"priced {len(estimates)} baskets in {time.perf_counter() - tick:.2f} s")

    with open("prices.csv", "w", newline="") as handle:
        out = csv.writer(handle)
        out.writerow(["basket", "price", "error"])
        for name in sorted(estimates):
            price, error = estimates[name]
            out.writerow([name, f"{price:.6f}", f"{error:.6f}"])
    print("load", " ".join(f"{slot}:{load.get(slot, 0)}" for slot in range(WORKERS)))
    total = sum(estimates[name][0] for name in sorted(estimates))
    worst = max(sorted(estimates), key=lambda name: estimates[name][1])
    print(f"book value {total:.6f}")
    print(f"largest error {worst} {estimates[worst][1]:.6f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        WorkerNode(int(sys.argv[2])).serve(int(sys.argv[3]))
    else:
        main()
