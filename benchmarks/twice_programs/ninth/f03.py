"""Federated averaging of a two-layer network over simulated hospitals.

Modelled on https://github.com/VectorInstitute/FL4Health/pull/278
Experiments with more than two clients differ a little though all seeds are pinned.
"""
import argparse
import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

from f03_fed.client import Client

log = logging.getLogger("fed")


def init_params(rng, d, h, k):
    return [rng.normal(0, d ** -0.5, (d, h)).astype(np.float32), np.zeros(h, np.float32),
            rng.normal(0, h ** -0.5, (h, k)).astype(np.float32), np.zeros(k, np.float32)]


def make_sites(rng, n_sites, d, k):
    """Sites of unequal size, each with its own shift of the inputs."""
    proto = rng.normal(0, 0.45, (k, d))
    sites = []
    for s in range(n_sites):
        n = int(rng.integers(300, 900))
        mix = rng.dirichlet(np.full(k, 0.7))
        y = rng.choice(k, size=n, p=mix)
        shift = rng.normal(0, 0.4, d)
        x = proto[y] + shift + rng.normal(0, 1.3, (n, d))
        sites.append((x.astype(np.float32), y))
    return sites


class Server:
    def __init__(self, params, momentum):
        self.params = params
        self.velocity = [np.zeros_like(p) for p in params]
        self.momentum = momentum

    def aggregate(self, updates):
        """Weighted mean of client deltas, applied with server momentum."""
        total = np.float32(sum(n for n, _, _ in updates))
        mean = [np.zeros_like(p) for p in self.params]
        for n, delta, _ in updates:
            for m, d in zip(mean, delta):
                m += d * (np.float32(n) / total)
        for p, v, m in zip(self.params, self.velocity, mean):
            v *= np.float32(self.momentum)
            v += m
            p += v


def fit_round(pool, clients, params, rnd):
    futures = {pool.submit(c.fit, params, rnd): c for c in clients}
    updates = []
    for fut in as_completed(futures):  # cause
        updates.append(fut.result())
    return updates


def evaluate(clients, params):
    loss = correct = count = 0
    for c in clients:
        l, a, n = c.evaluate(params)
        loss, correct, count = loss + l * n, correct + a * n, count + n
    return loss / count, correct / count


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--sites", type=int, default=14)
    ap.add_argument("--rounds", type=int, default=70)
    ap.add_argument("--workers", type=int, default=4)
    ap.add_argument("--features", type=int, default=40)
    ap.add_argument("--classes", type=int, default=6)
    ap.add_argument("--hidden", type=int, default=64)
    ap.add_argument("--local-epochs", type=int, default=2)
    ap.add_argument("--lr", type=float, default=0.08)
    ap.add_argument("--momentum", type=float, default=0.6)
    ap.add_argument("--seed", type=int, default=5)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")

    rng = np.random.default_rng(args.seed)
    sites = make_sites(rng, args.sites, args.features, args.classes)
    clients = [Client(i, x, y, args.lr, args.local_epochs, args.seed)
               for i, (x, y) in enumerate(sites)]
    server = Server(init_params(rng, args.features, args.hidden, args.classes), args.momentum)

    history = []
    with ThreadPoolExecutor(args.workers) as pool:
        for rnd in range(args.rounds):
            t0 = time.perf_counter()
            updates = fit_round(pool, clients, [p.copy() for p in server.params], rnd)
            server.aggregate(updates)
            train_loss = float(np.mean(np.sort([u[2] for u in updates])))
            loss, acc = evaluate(clients, server.params)
            history.append({"round": rnd, "train_loss": train_loss,
                            "val_loss": float(loss), "val_acc": float(acc)})
            log.info("round %2d train %.6f val %.6f acc %.4f  %.2fs", rnd, train_loss, loss, acc,
                     time.perf_counter() - t0)

    np.savez("global_model.npz", *server.params)
    with open("history.json", "w") as fh:
        json.dump({"args": vars(args), "history": history}, fh, indent=1)


if __name__ == "__main__":
    main()
