"""Successive halving over linear classifiers, trial folders and status tables as Ray Tune writes them.

Modelled on: ray-project/ray (ray.tune: <trainable>_<trial id>_<n>_<params>_<date>/result.json, progress.csv,
params.json; time_this_iter_s, time_total_s, timestamp, pid, hostname, node_ip; "Current time", "Running for").
"""
import csv
import json
import os
import pickle
import platform
import random
import socket
import time
import uuid
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import psutil
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

SEED, N_TRIALS, MAX_T, GRACE, ETA = 2023, 9, 9, 1, 3


def node_ip():
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


class Trainable:
    """One trial: a linear model trained by epochs of minibatches."""

    def __init__(self, config, data):
        self.config, (self.xt, self.xv, self.yt, self.yv) = config, data
        self.model = SGDClassifier(loss="log_loss", penalty="elasticnet", alpha=config["alpha"], l1_ratio=config["l1_ratio"],
                                   learning_rate="constant", eta0=config["lr"], random_state=config["seed"], average=config["average"])
        self.rng = np.random.default_rng(config["seed"])

    def step(self):
        order = self.rng.permutation(len(self.yt))
        for i in range(0, len(order), self.config["batch"]):
            idx = order[i:i + self.config["batch"]]
            self.model.partial_fit(self.xt[idx], self.yt[idx], classes=[0, 1])
        p = self.model.predict_proba(self.xv)[:, 1]
        return {"loss": float(log_loss(self.yv, np.clip(p, 1e-6, 1 - 1e-6))), "mean_accuracy": float(((p > 0.5) == self.yv).mean())}


class Trial:
    def __init__(self, n, config, data, root):
        self.n, self.config, self.status = n, config, "PENDING"
        self.trial_id = uuid.uuid4().hex[:5] + f"_{n:05d}"
        short = ",".join(f"{k}={v:.4f}" if isinstance(v, float) else f"{k}={v}" for k, v in config.items() if k != "seed")
        self.name = f"train_sgd_{self.trial_id}"
        self.dir = root / f"{self.name}_{n + 1}_{short}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
        self.dir.mkdir(parents=True)
        (self.dir / "params.json").write_text(json.dumps(config))
        (self.dir / "params.pkl").write_bytes(pickle.dumps(config))
        self.trainable, self.iteration, self.total, self.last = Trainable(config, data), 0, 0.0, None

    def train(self):
        t = time.time()
        res = self.trainable.step()
        self.iteration += 1
        dt = time.time() - t
        self.total += dt
        now = datetime.now()
        self.last = {**res, "timestamp": int(now.timestamp()), "checkpoint_dir_name": None, "done": False, "training_iteration": self.iteration,
                     "trial_id": self.trial_id, "date": now.strftime("%Y-%m-%d_%H-%M-%S"), "time_this_iter_s": dt, "time_total_s": self.total,
                     "pid": os.getpid(), "hostname": platform.node(), "node_ip": node_ip(), "time_since_restore": self.total,
                     "iterations_since_restore": self.iteration}
        with open(self.dir / "result.json", "a") as f:
            f.write(json.dumps({**self.last, "config": self.config}) + "\n")
        with open(self.dir / "progress.csv", "a", newline="") as f:
            w = csv.DictWriter(f, fieldnames=list(self.last))
            if self.iteration == 1:
                w.writeheader()
            w.writerow(self.last)
        return self.last


def status(trials, t0, note):
    vm = psutil.virtual_memory()
    print("== Status ==")
    print(f"Current time: {datetime.now():%Y-%m-%d %H:%M:%S} (running for {timedelta(seconds=int(time.time() - t0))}.{int((time.time() - t0) * 100) % 100:02d})")
    print(f"Memory usage on this node: {(vm.total - vm.available) / 2 ** 30:.1f}/{vm.total / 2 ** 30:.1f} GiB")
    print(f"Using SuccessiveHalving: {note}")
    states = {s: sum(t.status == s for t in trials) for s in ("PENDING", "RUNNING", "PAUSED", "TERMINATED")}
    print(f"Number of trials: {len(trials)}/{N_TRIALS} (" + ", ".join(f"{v} {k}" for k, v in states.items() if v) + ")")
    print("+-------------------------+------------+----------------+----------+-------+--------+------------------+----------+")
    print("| Trial name              | status     | loc            |       lr | batch |   iter |   total time (s) |     loss |")
    print("|-------------------------+------------+----------------+----------+-------+--------+------------------+----------|")
    for t in trials:
        r = t.last or {}
        print(f"| {t.name:23s} | {t.status:10s} | {node_ip()}:{os.getpid():<5d} | {t.config['lr']:8.5f} | {t.config['batch']:5d} | {t.iteration:6d} "
              f"| {t.total:16.6f} | {r.get('loss', float('nan')):8.5f} |")
    print("+-------------------------+------------+----------------+----------+-------+--------+------------------+----------+\n")


def sample(rng, n):
    return {"lr": 10 ** rng.uniform(-4, -0.5), "alpha": 10 ** rng.uniform(-6, -2), "l1_ratio": rng.uniform(0, 0.5),
            "batch": rng.choice([32, 64, 128]), "average": rng.choice([True, False]), "seed": 100 + n}


def main():
    t0 = time.time()
    rng = random.Random(SEED)
    exp = f"train_sgd_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    root = Path("ray_results") / exp
    x, y = make_classification(2400, 40, n_informative=12, n_redundant=8, flip_y=0.04, random_state=SEED)
    xt, xv, yt, yv = train_test_split(x, y, test_size=0.25, random_state=SEED)
    sc = StandardScaler().fit(xt)
    data = (sc.transform(xt), sc.transform(xv), yt, yv)
    print(f"{datetime.now():%Y-%m-%d %H:%M:%S,%f}"[:-3] + f"\tINFO worker.py:1621 -- Started a local instance, session session_{datetime.now():%Y-%m-%d_%H-%M-%S_%f}_{os.getpid()}")
    trials = [Trial(i, sample(rng, i), data, root) for i in range(N_TRIALS)]
    alive, target, rungs = list(trials), GRACE, []
    while alive:
        for t in alive:
            t.status = "RUNNING"
            while t.iteration < target:
                r = t.train()
            print(f"Result for {t.name}: loss {r['loss']:.6f}, mean_accuracy {r['mean_accuracy']:.4f}, iteration {r['training_iteration']}, "
                  f"time_this_iter_s {r['time_this_iter_s']:.4f}")
            t.status = "PAUSED"
        alive.sort(key=lambda t: (t.last["loss"], t.n))
        rungs.append({"milestone": target, "order": [t.n for t in alive], "losses": [t.last["loss"] for t in alive]})
        keep = len(alive) // ETA if target < MAX_T else 0
        for t in alive[keep:]:
            t.status = "TERMINATED"
        status(trials, t0, " | ".join(f"Iter {g['milestone']}: {np.median(g['losses']):.6f}" for g in rungs))
        alive, target = alive[:keep], min(MAX_T, target * ETA)
    best = min(trials, key=lambda t: (t.last["loss"], t.n))
    print(f"Total run time: {time.time() - t0:.2f} seconds ({sum(t.total for t in trials):.2f} seconds for the tuning loop).")
    print(f"Best trial {best.n}: config {best.config}")
    print(f"Best trial final validation loss: {best.last['loss']:.8f}, accuracy {best.last['mean_accuracy']:.6f}")
    np.savez("best_model.npz", coef=best.trainable.model.coef_, intercept=best.trainable.model.intercept_, mean=sc.mean_, scale=sc.scale_)
    (root / f"experiment_state-{datetime.now():%Y-%m-%d_%H-%M-%S}.json").write_text(json.dumps({
        "runner_data": {"_session_str": exp, "_start_time": t0, "_total_time": sum(t.total for t in trials), "_iteration": sum(t.iteration for t in trials)},
        "rungs": rungs, "checkpoints": [{"trial_id": t.trial_id, "status": t.status, "last_result": t.last} for t in trials]}, indent=1))
    Path("analysis.csv").write_text("trial,lr,alpha,l1_ratio,batch,average,iterations,loss,accuracy,time_total_s,logdir\n" + "".join(
        f"{t.n},{t.config['lr']:.8f},{t.config['alpha']:.10f},{t.config['l1_ratio']:.6f},{t.config['batch']},{t.config['average']},{t.iteration},"
        f"{t.last['loss']:.10f},{t.last['mean_accuracy']:.6f},{t.total:.4f},\"{t.dir.name}\"\n" for t in trials))


if __name__ == "__main__":
    main()
