"""Tune a gradient-boosting regressor with parallel Bayesian optimisation.

Modelled on https://github.com/AnotherSamWilson/ParBayesianOptimization/issues/59

A Gaussian process proposes hyperparameters by expected improvement while several
worker processes score earlier proposals by cross-validation. Writes trials.csv
and best.json.
"""
import csv
import json
import logging
import math
import multiprocessing as mp
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import norm

SEED = 42
WORKERS = 4
INIT_POINTS = 8
ITERATIONS = 40
FOLDS = 3

BOUNDS = {
    "max_depth": (1, 5, "int"),
    "min_leaf": (2, 30, "int"),
    "subsample": (0.3, 1.0, "float"),
    "eta": (0.02, 0.5, "log"),
    "rounds": (6, 24, "int"),
}

log = logging.getLogger("bayesopt")


# ---------------------------------------------------------------- search space
def decode(unit):
    params = {}
    for u, (name, (lo, hi, kind)) in zip(unit, BOUNDS.items()):
        if kind == "log":
            params[name] = float(math.exp(math.log(lo) + u * (math.log(hi) - math.log(lo))))
        else:
            value = lo + u * (hi - lo)
            params[name] = int(round(value)) if kind == "int" else float(value)
    return params


# ------------------------------------------------------------- boosted trees
class Tree:
    """Regression tree with splits on quantile bins."""

    def __init__(self, depth, min_leaf):
        self.depth, self.min_leaf = depth, min_leaf

    def fit(self, bins, target, rows):
        self.nodes = {}
        self._grow(bins, target, rows, 1, self.depth)
        return self

    def _grow(self, bins, target, rows, node, depth):
        y = target[rows]
        self.nodes[node] = (None, None, y.mean())
        if depth == 0 or len(rows) < 2 * self.min_leaf:
            return
        best = (1e-9, None, None)
        for f in range(bins.shape[1]):
            b = bins[rows, f]
            cnt = np.bincount(b, minlength=16).cumsum()
            tot = np.bincount(b, weights=y, minlength=16).cumsum()
            left = cnt[:-1]
            right = cnt[-1] - left
            ok = (left >= self.min_leaf) & (right >= self.min_leaf)
            if not ok.any():
                continue
            gain = np.where(ok, tot[:-1] ** 2 / np.maximum(left, 1)
                            + (tot[-1] - tot[:-1]) ** 2 / np.maximum(right, 1), -np.inf)
            k = int(gain.argmax())
            g = gain[k] - tot[-1] ** 2 / cnt[-1]
            if g > best[0]:
                best = (g, f, k)
        if best[1] is None:
            return
        _, f, k = best
        self.nodes[node] = (f, k, y.mean())
        go = bins[rows, f] <= k
        self._grow(bins, target, rows[go], 2 * node, depth - 1)
        self._grow(bins, target, rows[~go], 2 * node + 1, depth - 1)

    def predict(self, bins):
        out = np.empty(len(bins))
        stack = [(1, np.arange(len(bins)))]
        while stack:
            node, rows = stack.pop()
            f, k, mean = self.nodes[node]
            if f is None:
                out[rows] = mean
                continue
            go = bins[rows, f] <= k
            stack += [(2 * node, rows[go]), (2 * node + 1, rows[~go])]
        return out


def make_data(seed, n=450):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, size=(n, 8))
    y = (10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
         + 5 * x[:, 4] + rng.normal(0, 1.5, size=n))
    edges = np.quantile(x, np.linspace(0, 1, 17)[1:-1], axis=0)
    bins = np.stack([np.searchsorted(edges[:, f], x[:, f]) for f in range(8)], axis=1)
    return bins, y


def score(trial, params):
    """Cross-validated R2 of one configuration, repeatable for a given trial number."""
    t0 = time.perf_counter()
    bins, y = make_data(SEED)
    fold = np.random.default_rng(SEED).permutation(len(y)) % FOLDS
    rng = np.random.default_rng(SEED)
    scores = []
    for k in range(FOLDS):
        tr, te = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        mean = y[tr].mean()
        pred, held = np.full(len(y), mean), np.full(len(te), mean)
        for _ in range(params["rounds"]):
            rows = np.sort(rng.choice(tr, size=int(params["subsample"] * len(tr)), replace=False))
            tree = Tree(params["max_depth"], params["min_leaf"]).fit(bins, y - pred, rows)
            pred += params["eta"] * tree.predict(bins)
            held += params["eta"] * tree.predict(bins[te])
        scores.append(1.0 - ((y[te] - held) ** 2).sum() / ((y[te] - y[te].mean()) ** 2).sum())
    return trial, float(np.mean(scores)), time.perf_counter() - t0


# --------------------------------------------------------------- the optimiser
class BayesOpt:
    def __init__(self, dim, rng, noise=1e-4, length=0.35):
        self.dim, self.rng, self.noise, self.length = dim, rng, noise, length
        self.x, self.y = [], []
        self.waiting = {}

    def kernel(self, a, b):
        d = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1) + 1e-12) * math.sqrt(5) / self.length
        return (1 + d + d * d / 3) * np.exp(-d)

    def tell(self, trial, value):
        self.x.append(self.waiting.pop(trial))
        self.y.append(value)

    def ask(self, trial):
        if trial < INIT_POINTS:
            point = self.rng.random(self.dim)
        else:
            point = self._improve()
        self.waiting[trial] = point
        return point

    def _improve(self):
        x, y = np.array(self.x), np.array(self.y)
        mu, sd = y.mean(), y.std() + 1e-9
        z = (y - mu) / sd
        if self.waiting:
            x = np.vstack([x, *self.waiting.values()])
            z = np.concatenate([z, np.full(len(self.waiting), z.mean())])
        chol = cho_factor(self.kernel(x, x) + self.noise * np.eye(len(x)), lower=True)
        weights = cho_solve(chol, z)
        cand = self.rng.random((800, self.dim))
        near = np.array(self.x)[int(np.argmax(self.y))]
        cand[:200] = np.clip(near + self.rng.normal(0, 0.08, size=(200, self.dim)), 0, 1)
        k = self.kernel(cand, x)
        mean = k @ weights
        var = np.maximum(1.0 - np.einsum("ij,ji->i", k, cho_solve(chol, k.T)), 1e-12)
        s = np.sqrt(var)
        u = (mean - z.max() - 0.01) / s
        return cand[int(np.argmax(s * (u * norm.cdf(u) + norm.pdf(u))))]


def optimise(pool):
    opt = BayesOpt(len(BOUNDS), np.random.default_rng(SEED))
    rows, running, launched = [], [], 0
    number = {}
    while len(rows) < ITERATIONS:
        while launched < ITERATIONS and len(running) < WORKERS:
            params = decode(opt.ask(launched))
            fut = pool.submit(score, launched, params)
            number[fut] = (launched, params)
            running.append(fut)
            launched += 1
        done = wait(running, return_when=FIRST_COMPLETED).done  # cause
        for fut in sorted(done, key=lambda f: number[f][0]):
            running.remove(fut)
            trial, value, took = fut.result()
            opt.tell(trial, value)
            rows.append({"trial": trial, **number[fut][1], "r2": value})
            log.info("trial %2d r2 %.6f best %.6f (%.2fs)", trial, value, max(r["r2"] for r in rows), took)
    return rows


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="%(asctime)s %(message)s")
    np.random.seed(SEED)
    t0 = time.perf_counter()
    with ProcessPoolExecutor(WORKERS, mp_context=mp.get_context("fork")) as pool:
        rows = optimise(pool)
    log.info("%d trials on %d workers in %.2fs", len(rows), WORKERS, time.perf_counter() - t0)
    with open("trials.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda r: r["trial"]))
    best = max(rows, key=lambda r: r["r2"])
    with open("best.json", "w") as fh:
        json.dump({"seed": SEED, "best": best}, fh, indent=2)
    log.info("best: trial %d %s, saved to %s", best["trial"],
             {k: v for k, v in best.items() if k != "trial"}, os.path.abspath("best.json"))


if __name__ == "__main__":
    main()
