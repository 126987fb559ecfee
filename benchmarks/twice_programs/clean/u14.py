"""Federated averaging of a softmax classifier with clients in worker processes.

Modelled on: adap/flower (examples/quickstart-numpy and sklearn-logreg-mnist, src/py/flwr/server/
history.py, app.py): "INFO : [ROUND 1]", "configure_fit: strategy sampled 4 clients (out of 8)",
"app_fit: losses_distributed [..]", "Run finished 5 round(s) in 1.23s"; client logs per process,
history pickle, results JSON with run id and message timings, global parameters as npz per round.
"""
import json
import logging
import multiprocessing as mp
import os
import pickle
import random
import secrets
import time
from datetime import datetime
from pathlib import Path

import numpy as np

CLIENTS, SAMPLED, ROUNDS, CLASSES, DIM = 8, 4, 6, 5, 20


class Formatter(logging.Formatter):
    def format(self, r):
        return f"\x1b[92m{r.levelname}\x1b[0m {self.formatTime(r, '%H:%M:%S')} {os.getpid()}:      {r.getMessage()}"


log = logging.getLogger("flwr")
log.setLevel(logging.INFO)
_h = logging.StreamHandler()
_h.setFormatter(Formatter())
log.addHandler(_h)


def partition(cid):
    rng = np.random.default_rng(1000 + cid)
    centers = np.random.default_rng(1).normal(0, 1.1, (CLASSES, DIM))
    p = rng.dirichlet(np.full(CLASSES, 0.5))
    n = int(rng.integers(150, 420))
    y = rng.choice(CLASSES, n, p=p)
    x = centers[y] + rng.normal(0, 1.6, (n, DIM))
    cut = int(0.8 * n)
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def loss_acc(params, x, y):
    p = softmax(x @ params[0] + params[1])
    return float(-np.log(p[np.arange(len(y)), y] + 1e-12).mean()), float((p.argmax(1) == y).mean())


class NumPyClient:
    def __init__(self, cid):
        self.cid = cid
        self.train, self.test = partition(cid)

    def fit(self, params, config):
        w, b = (p.copy() for p in params)
        x, y = self.train
        rng = np.random.default_rng([self.cid, config["server_round"]])
        for _ in range(config["local_epochs"]):
            for i in np.array_split(rng.permutation(len(y)), max(1, len(y) // 16)):
                g = softmax(x[i] @ w + b)
                g[np.arange(len(i)), y[i]] -= 1
                w -= config["lr"] * (x[i].T @ g / len(i))
                b -= config["lr"] * g.mean(0)
        return [w, b], len(y), {"train_loss": loss_acc([w, b], x, y)[0]}

    def evaluate(self, params):
        loss, acc = loss_acc(params, *self.test)
        return loss, len(self.test[1]), {"accuracy": acc}


def client_app(job):
    """One message to one client, in whichever worker process is free."""
    kind, cid, params, config = job
    t = time.time()
    client = NumPyClient(cid)
    out = client.fit(params, config) if kind == "fit" else client.evaluate(params)
    meta = {"pid": os.getpid(), "created_at": t, "seconds": time.time() - t, "message_id": secrets.token_hex(16)}
    return out, meta


class FedAvg:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def sample(self, k):
        return sorted(self.rng.sample(range(CLIENTS), k))

    @staticmethod
    def aggregate(results):
        total = sum(n for _, n, _ in results)
        return [sum(n / total * p[i] for p, n, _ in results) for i in range(2)]

    @staticmethod
    def weighted(results, pick):
        total = sum(r[1] for r in results)
        return sum(r[1] * pick(r) for r in results) / total


def main():
    run_id, started = secrets.randbits(63), time.time()
    out = Path("outputs") / f"{datetime.now():%Y-%m-%d}" / f"{datetime.now():%H-%M-%S}"
    out.mkdir(parents=True)
    log.info("Starting Flower ServerApp, config: num_rounds=%d, no round_timeout", ROUNDS)
    log.info("Run ID: %d", run_id)
    params = [np.zeros((DIM, CLASSES)), np.zeros(CLASSES)]
    strategy = FedAvg(seed=42)
    history = {"losses_distributed": [], "metrics_distributed": {"accuracy": []}, "metrics_fit": {"train_loss": []}}
    messages = []
    with mp.get_context("fork").Pool(2) as pool:
        for rnd in range(1, ROUNDS + 1):
            log.info("")
            log.info("[ROUND %d]", rnd)
            t = time.time()
            cids = strategy.sample(SAMPLED)
            log.info("configure_fit: strategy sampled %d clients (out of %d)", SAMPLED, CLIENTS)
            cfg = {"server_round": rnd, "local_epochs": 12, "lr": 0.05}
            got = pool.map(client_app, [("fit", c, params, cfg) for c in cids], chunksize=1)
            params = strategy.aggregate([r for r, _ in got])
            history["metrics_fit"]["train_loss"].append(
                (rnd, strategy.weighted([r for r, _ in got], lambda r: r[2]["train_loss"])))
            log.info("aggregate_fit: received %d results and 0 failures", len(got))
            ev = pool.map(client_app, [("evaluate", c, params, None) for c in range(CLIENTS)], chunksize=1)
            loss = strategy.weighted([r for r, _ in ev], lambda r: r[0])
            acc = strategy.weighted([r for r, _ in ev], lambda r: r[2]["accuracy"])
            history["losses_distributed"].append((rnd, loss))
            history["metrics_distributed"]["accuracy"].append((rnd, acc))
            log.info("aggregate_evaluate: received %d results and 0 failures", len(ev))
            log.info("round %d took %.3fs", rnd, time.time() - t)
            np.savez(out / f"round-{rnd}-weights.npz", *params)
            messages += [{"round": rnd, "kind": "fit", "cid": c, **m} for c, (_, m) in zip(cids, got)]
            messages += [{"round": rnd, "kind": "evaluate", "cid": c, **m} for c, (_, m) in enumerate(ev)]
    took = time.time() - started
    log.info("")
    log.info("[SUMMARY]")
    log.info("Run finished %d round(s) in %.2fs", ROUNDS, took)
    log.info("\tHistory (loss, distributed):")
    for rnd, loss in history["losses_distributed"]:
        log.info("\t\tround %d: %s", rnd, loss)
    with open(out / "results.pkl", "wb") as f:
        pickle.dump({"history": history, "run_id": run_id, "duration": took, "finished": datetime.now()}, f)
    with open(out / "results.json", "w") as f:
        json.dump({"run_id": run_id, "run_dir": str(out), "duration": took, **history, "messages": messages}, f, indent=1)
    for rnd, acc in history["metrics_distributed"]["accuracy"]:
        print(f"round {rnd}: accuracy {acc:.8f}  loss {history['losses_distributed'][rnd - 1][1]:.8f}")


if __name__ == "__main__":
    main()
