"""Pool based active learning with a committee.

Report: https://github.com/ntucllab/libact/pull/200
A committee of bootstrapped models asks an ideal labeler for the examples it disagrees on most.
"""
import argparse
import csv
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

log = logging.getLogger("libact")


@dataclass
class ALConfig:
    pool: int = 700
    features: int = 20
    initial: int = 20
    quota: int = 12
    batch: int = 4
    committee: int = 4
    trees: int = 12
    seed: int = 1126
    out: str = "al_runs"


class Dataset:
    def __init__(self, x, y_hidden, labelled):
        self.x = x
        self.y = np.full(len(x), -1)
        self.y[labelled] = y_hidden[labelled]

    def labelled(self):
        idx = np.flatnonzero(self.y >= 0)
        return self.x[idx], self.y[idx]

    def unlabelled(self):
        return np.flatnonzero(self.y < 0)

    def update(self, idx, labels):
        self.y[idx] = labels


class IdealLabeler:
    def __init__(self, y):
        self.y = y

    def label(self, idx):
        return self.y[idx]


class Committee:
    """Bootstrapped clones of one base model."""

    def __init__(self, base, size, random_state):
        self.base = base
        self.size = size
        self.random_state = random_state
        self.members = []

    def fit(self, x, y):
        self.members = []
        while len(self.members) < self.size:
            bag = self.random_state.randint(0, len(x), size=len(x))
            if len(np.unique(y[bag])) < 2:
                continue
            self.members.append(clone(self.base).fit(x[bag], y[bag]))
        return self

    def votes(self, x):
        return np.stack([m.predict_proba(x) for m in self.members])


def bald_scores(probs: np.ndarray) -> np.ndarray:
    eps = 1e-12
    mean = probs.mean(axis=0)
    total = -(mean * np.log(mean + eps)).sum(axis=1)
    expected = -(probs * np.log(probs + eps)).sum(axis=2).mean(axis=0)
    return total - expected


class BALD:
    def __init__(self, cfg: ALConfig):
        self.cfg = cfg
        self.state = np.random.RandomState(cfg.seed)
        self.base = RandomForestClassifier(n_estimators=cfg.trees, max_depth=6)  # cause

    def make_query(self, ds: Dataset):
        committee = Committee(self.base, self.cfg.committee, self.state)
        committee.fit(*ds.labelled())
        pool = ds.unlabelled()
        scores = bald_scores(committee.votes(ds.x[pool]))
        order = np.lexsort((pool, -scores))
        return pool[order[: self.cfg.batch]]


def evaluate(ds: Dataset, x_test, y_test):
    x, y = ds.labelled()
    model = LogisticRegression(max_iter=500, C=0.5).fit(x, y)
    prob = model.predict_proba(x_test)
    return float(accuracy_score(y_test, prob.argmax(1))), float(log_loss(y_test, prob))


def load(cfg: ALConfig):
    x, y = make_classification(
        n_samples=cfg.pool + 400,
        n_features=cfg.features,
        n_informative=7,
        n_clusters_per_class=3,
        flip_y=0.03,
        random_state=cfg.seed,
    )
    return train_test_split(x, y, test_size=400, random_state=cfg.seed, stratify=y)


def run(cfg: ALConfig):
    x, x_test, y, y_test = load(cfg)
    start = np.random.RandomState(cfg.seed + 1).choice(len(x), cfg.initial, replace=False)
    ds = Dataset(x, y, start)
    labeler = IdealLabeler(y)
    strategy = BALD(cfg)
    history, queried = [], []
    for step in range(cfg.quota):
        ask = strategy.make_query(ds)
        ds.update(ask, labeler.label(ask))
        acc, loss = evaluate(ds, x_test, y_test)
        queried.append(ask.tolist())
        history.append((step, len(ds.labelled()[1]), round(acc, 5), round(loss, 5)))
        log.info("step %d acc %.4f", step, acc)
    return history, queried


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    ap = argparse.ArgumentParser(description="active learning benchmark")
    ap.add_argument("--quota", type=int, default=ALConfig.quota)
    ap.add_argument("--seed", type=int, default=ALConfig.seed)
    ns = ap.parse_args()
    cfg = ALConfig(quota=ns.quota, seed=ns.seed)
    t0 = time.time()
    history, queried = run(cfg)
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    with open(out / "learning_curve.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["step", "labels", "accuracy", "log_loss"])
        w.writerows(history)
    (out / "queries.json").write_text(json.dumps(queried))
    print("final accuracy", history[-1][2], "log loss", history[-1][3])
    log.info("elapsed %.1fs", time.time() - t0)


if __name__ == "__main__":
    main()
