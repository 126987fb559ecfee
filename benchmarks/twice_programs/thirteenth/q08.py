"""Word vectors from a co-occurrence matrix.

Report: https://github.com/stanfordnlp/GloVe/issues/207
AdaGrad over shuffled co-occurrence records, split over a few threads.
"""
import argparse
import json
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np

log = logging.getLogger("glove")


@dataclass
class GloveConfig:
    vocab: int = 400
    tokens: int = 150_000
    window: int = 5
    dim: int = 24
    epochs: int = 60
    threads: int = 4
    lr: float = 0.05
    x_max: float = 20.0
    alpha: float = 0.75
    seed: int = 207
    out: str = "vectors"


def corpus(cfg: GloveConfig) -> np.ndarray:
    rng = np.random.default_rng(cfg.seed)
    topics = 12
    words = np.empty(cfg.tokens, dtype=np.int64)
    topic = 0
    for i in range(cfg.tokens):
        if i % 40 == 0:
            topic = int(rng.integers(topics))
        if rng.random() < 0.35:
            words[i] = rng.zipf(1.5) % 30
        else:
            words[i] = 30 + (topic * 31 + rng.geometric(0.12)) % (cfg.vocab - 30)
    return words


@numba.njit(cache=False)
def cooccurrence(words, vocab, window):
    counts = np.zeros((vocab, vocab))
    for i in range(len(words)):
        for k in range(1, window + 1):
            if i >= k:
                a, b = words[i], words[i - k]
                counts[a, b] += 1.0 / k
                counts[b, a] += 1.0 / k
    return counts


@numba.njit(nogil=True, cache=False)
def glove_thread(rows, cols, vals, begin, end, W, C, bw, bc, GW, GC, lr, x_max, alpha):
    cost = 0.0
    dim = W.shape[1]
    for r in range(begin, end):
        i, j, x = rows[r], cols[r], vals[r]
        dot = bw[i] + bc[j]
        for d in range(dim):
            dot += W[i, d] * C[j, d]
        diff = dot - np.log(x)
        weight = 1.0 if x > x_max else (x / x_max) ** alpha
        f = weight * diff
        cost += 0.5 * f * diff
        f *= lr
        for d in range(dim):
            gw = f * C[j, d]
            gc = f * W[i, d]
            W[i, d] -= gw / np.sqrt(GW[i, d])
            C[j, d] -= gc / np.sqrt(GC[j, d])
            GW[i, d] += gw * gw
            GC[j, d] += gc * gc
        bw[i] -= f
        bc[j] -= f
    return cost


class Trainer:
    def __init__(self, cfg: GloveConfig, counts: np.ndarray):
        self.cfg = cfg
        rng = np.random.default_rng(cfg.seed + 1)
        rows, cols = np.nonzero(counts)
        order = rng.permutation(len(rows))
        self.rows, self.cols = rows[order], cols[order]
        self.vals = counts[self.rows, self.cols]
        shape = (cfg.vocab, cfg.dim)
        self.W = (rng.random(shape) - 0.5) / cfg.dim
        self.C = (rng.random(shape) - 0.5) / cfg.dim
        self.bw, self.bc = np.zeros(cfg.vocab), np.zeros(cfg.vocab)
        self.GW, self.GC = np.ones(shape), np.ones(shape)
        self.costs = []

    def _work(self, part, bounds, costs):
        c = self.cfg
        costs[part] = glove_thread(
            self.rows, self.cols, self.vals, bounds[part], bounds[part + 1],
            self.W, self.C, self.bw, self.bc, self.GW, self.GC, c.lr, c.x_max, c.alpha,
        )

    def epoch(self):
        n = self.cfg.threads
        bounds = np.linspace(0, len(self.rows), n + 1).astype(int)
        costs = np.zeros(n)
        workers = [threading.Thread(target=self._work, args=(p, bounds, costs)) for p in range(n)]  # cause
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        self.costs.append(float(costs.sum() / len(self.rows)))

    def fit(self):
        for e in range(self.cfg.epochs):
            t0 = time.perf_counter()
            self.epoch()
            log.info("epoch %d cost %.6f (%.3fs)", e, self.costs[-1], time.perf_counter() - t0)
        return self.W + self.C


def neighbours(vec: np.ndarray, words, k=6):
    unit = vec / np.linalg.norm(vec, axis=1, keepdims=True)
    sim = unit @ unit.T
    return {int(w): [int(j) for j in np.argsort(-sim[w], kind="stable")[1 : k + 1]] for w in words}


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--threads", type=int, default=GloveConfig.threads)
    ap.add_argument("--epochs", type=int, default=GloveConfig.epochs)
    ns = ap.parse_args()
    cfg = GloveConfig(threads=ns.threads, epochs=ns.epochs)
    counts = cooccurrence(corpus(cfg), cfg.vocab, cfg.window)
    log.info("%d nonzero cells", np.count_nonzero(counts))
    trainer = Trainer(cfg, counts)
    vec = trainer.fit()
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    np.savetxt(out / "vectors.txt", vec, fmt="%.6f")
    near = neighbours(vec, range(40, 80, 5))
    (out / "neighbours.json").write_text(json.dumps(near))
    print("final cost %.9f" % trainer.costs[-1])
    print("neighbours of 40:", near[40])


if __name__ == "__main__":
    main()
