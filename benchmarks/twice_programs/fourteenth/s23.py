"""Item recommendations from implicit feedback.

Modelled on https://github.com/pola-rs/polars-book/pull/195
Aggregates an interaction log, trains a factorisation model and evaluates recommendations.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numba import njit

log = logging.getLogger("recsys")


@dataclass
class RecConfig:
    seed: int = 88
    users: int = 3000
    items: int = 1200
    events: int = 150_000
    factors: int = 16
    epochs: int = 3
    lr: float = 0.05
    reg: float = 0.01
    top: int = 10


def make_log(cfg):
    rng = np.random.default_rng(cfg.seed)
    taste = rng.normal(size=(cfg.users, 4))
    kind = rng.normal(size=(cfg.items, 4))
    popularity = rng.zipf(1.6, cfg.items).clip(1, 200).astype(float)
    user = rng.integers(0, cfg.users, cfg.events * 2)
    item = rng.choice(cfg.items, cfg.events * 2, p=popularity / popularity.sum())
    affinity = (taste[user] * kind[item]).sum(1)
    keep = rng.random(len(user)) < 1 / (1 + np.exp(-affinity))
    day = rng.integers(0, 60, len(user))
    frame = pl.DataFrame({"user": user, "item": item, "day": day,
                          "seconds": rng.gamma(2.0, 30.0, len(user))})
    return frame.filter(pl.Series(keep)).head(cfg.events)


def aggregate(events):
    pairs = events.group_by("user", "item").agg(  # cause
        pl.len().alias("count"),
        pl.col("day").max().alias("last_day"),
        pl.col("seconds").max().alias("longest"),
    )
    return pairs.with_columns((1 + pl.col("count").log1p()).alias("weight"))


def holdout(pairs, rng, share=0.1):
    mask = rng.random(len(pairs)) < share
    flags = pl.Series("held", mask)
    return pairs.filter(~flags), pairs.filter(flags)


@njit
def bpr_epoch(users, items, negatives, weight, p, q, lr, reg):
    loss = 0.0
    for k in range(len(users)):
        u, i, j = users[k], items[k], negatives[k]
        x = 0.0
        for f in range(p.shape[1]):
            x += p[u, f] * (q[i, f] - q[j, f])
        g = 1.0 / (1.0 + np.exp(x))
        loss += weight[k] * np.log1p(np.exp(-x))
        for f in range(p.shape[1]):
            pu = p[u, f]
            p[u, f] += lr * (weight[k] * g * (q[i, f] - q[j, f]) - reg * pu)
            q[i, f] += lr * (weight[k] * g * pu - reg * q[i, f])
            q[j, f] += lr * (-weight[k] * g * pu - reg * q[j, f])
    return loss / len(users)


class BprModel:
    def __init__(self, cfg, rng):
        self.cfg = cfg
        self.rng = rng
        self.p = rng.normal(scale=0.1, size=(cfg.users, cfg.factors))
        self.q = rng.normal(scale=0.1, size=(cfg.items, cfg.factors))

    def fit(self, pairs):
        users = pairs["user"].to_numpy().copy()
        items = pairs["item"].to_numpy().copy()
        weight = pairs["weight"].to_numpy().copy()
        history = []
        for epoch in range(self.cfg.epochs):
            order = self.rng.permutation(len(users))
            negatives = self.rng.integers(0, self.cfg.items, len(users))
            t0 = time.perf_counter()
            loss = bpr_epoch(users[order], items[order], negatives, weight[order],
                             self.p, self.q, self.cfg.lr, self.cfg.reg)
            history.append(float(loss))
            log.info("epoch %d loss %.5f (%.2f s)", epoch, loss, time.perf_counter() - t0)
        return history

    def recommend(self, user, seen, top):
        scores = self.q @ self.p[user]
        scores[list(seen)] = -np.inf
        return np.argsort(-scores, kind="stable")[:top]


def evaluate(model, train, test, cfg):
    seen = {}
    for u, i in zip(train["user"].to_list(), train["item"].to_list()):
        seen.setdefault(u, set()).add(i)
    truth = {}
    for u, i in zip(test["user"].to_list(), test["item"].to_list()):
        truth.setdefault(u, set()).add(i)
    hits, ndcg = [], []
    for user in sorted(truth)[:800]:
        ranked = model.recommend(user, seen.get(user, ()), cfg.top)
        gains = [1 / np.log2(k + 2) for k, i in enumerate(ranked) if int(i) in truth[user]]
        hits.append(bool(gains))
        ndcg.append(sum(gains))
    return float(np.mean(hits)), float(np.mean(ndcg))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--events", type=int, default=RecConfig.events)
    ap.add_argument("--seed", type=int, default=RecConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = RecConfig(events=args.events, seed=args.seed)
    rng = np.random.default_rng(cfg.seed)
    events = make_log(cfg)
    pairs = aggregate(events)
    log.info("%d events, %d pairs", len(events), len(pairs))
    train, test = holdout(pairs, rng)
    model = BprModel(cfg, rng)
    history = model.fit(train)
    hit, ndcg = evaluate(model, train, test, cfg)
    out = Path("recsys")
    out.mkdir(exist_ok=True)
    np.savez(out / "factors.npz", users=model.p, items=model.q)
    metrics = {"loss": history, "hit": hit, "ndcg": ndcg, "test_pairs": len(test)}
    (out / "metrics.json").write_text(json.dumps(metrics))
    print(json.dumps({k: v if isinstance(v, int) else np.round(v, 7).tolist()
                      for k, v in metrics.items()}))


if __name__ == "__main__":
    main()
