"""Item recommendations by matrix factorisation on a polars ratings table.

Modelled on https://github.com/pola-rs/polars/issues/2674
The user got a different series each time that unique() was run on the same column.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

log = logging.getLogger("recsys")


@dataclass
class Config:
    users: int = 120
    items: int = 80
    density: float = 0.18
    rank: int = 6
    epochs: int = 12
    lr: float = 0.03
    reg: float = 0.05
    top_k: int = 5
    seed: int = 9
    out: str = "model"


def write_ratings(cfg, path):
    """Users with latent tastes rate a random part of the catalogue."""
    rng = np.random.default_rng(cfg.seed)
    taste = rng.normal(size=(cfg.users, 3))
    style = rng.normal(size=(cfg.items, 3))
    mask = rng.random((cfg.users, cfg.items)) < cfg.density
    u, i = np.nonzero(mask)
    score = 3 + (taste[u] * style[i]).sum(axis=1) * 0.7 + rng.normal(scale=0.4, size=len(u))
    order = rng.permutation(len(u))
    frame = pl.DataFrame({
        "user": [f"user{k:03d}" for k in u[order]],
        "item": [f"sku-{(k * 37) % 1000:03d}" for k in i[order]],
        "rating": np.clip(np.round(score[order] * 2) / 2, 1, 5),
        "day": rng.integers(0, 90, len(u)),
    })
    frame.write_csv(path)
    return path


def load_ratings(path):
    frame = pl.read_csv(path)
    counts = frame.group_by("item", maintain_order=True).len()
    popular = counts.filter(pl.col("len") >= 5)["item"].to_list()
    return frame.filter(pl.col("item").is_in(popular)).sort("day", "user", "item")


class Index:
    """Maps keys to consecutive integers."""

    def __init__(self, keys):
        self.keys = list(keys)
        self.pos = {k: n for n, k in enumerate(self.keys)}

    def __len__(self):
        return len(self.keys)

    def encode(self, series):
        return np.array([self.pos[k] for k in series.to_list()])


def build_indices(frame):
    users = Index(sorted(set(frame["user"].to_list())))
    items = Index(frame["item"].unique())  # cause
    return users, items


class MatrixFactorisation:
    def __init__(self, n_users, n_items, cfg):
        rng = np.random.default_rng(cfg.seed + 1)
        self.cfg = cfg
        self.P = rng.normal(scale=0.1, size=(n_users, cfg.rank))
        self.Q = rng.normal(scale=0.1, size=(n_items, cfg.rank))
        self.bu = np.zeros(n_users)
        self.bi = np.zeros(n_items)
        self.mu = 0.0

    def predict(self, u, i):
        return self.mu + self.bu[u] + self.bi[i] + (self.P[u] * self.Q[i]).sum(axis=-1)

    def fit(self, u, i, r):
        self.mu = float(r.mean())
        rng = np.random.default_rng(self.cfg.seed + 2)
        lr, reg = self.cfg.lr, self.cfg.reg
        for epoch in range(self.cfg.epochs):
            t0 = time.time()
            total = 0.0
            for k in rng.permutation(len(r)):
                a, b = u[k], i[k]
                err = r[k] - self.predict(a, b)
                total += err * err
                self.bu[a] += lr * (err - reg * self.bu[a])
                self.bi[b] += lr * (err - reg * self.bi[b])
                pa = self.P[a].copy()
                self.P[a] += lr * (err * self.Q[b] - reg * pa)
                self.Q[b] += lr * (err * pa - reg * self.Q[b])
            log.info("epoch %d rmse %.4f (%.2fs)", epoch, (total / len(r)) ** 0.5,
                     time.time() - t0)
        return self


def rmse(model, u, i, r):
    pred = np.clip(model.predict(u, i), 1, 5)
    return float(np.sqrt(np.mean((pred - r) ** 2)))


def recommend(model, users, items, seen, user, k):
    u = users.pos[user]
    scores = model.predict(np.full(len(items), u), np.arange(len(items)))
    ranked = sorted(zip(scores, items.keys), key=lambda t: (-t[0], t[1]))
    return [(key, float(s)) for s, key in ranked if key not in seen][:k]


def temporal_split(frame, last_days=15):
    cut = frame["day"].max() - last_days
    return frame.filter(pl.col("day") <= cut), frame.filter(pl.col("day") > cut)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=Config.epochs)
    ap.add_argument("--rank", type=int, default=Config.rank)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Config(epochs=args.epochs, rank=args.rank)

    frame = load_ratings(write_ratings(cfg, "ratings.csv"))
    users, items = build_indices(frame)
    print(f"{frame.height} ratings, {len(users)} users, {len(items)} items")
    train, test = temporal_split(frame)
    arrays = {}
    for name, part in [("train", train), ("test", test)]:
        arrays[name] = (users.encode(part["user"]), items.encode(part["item"]),
                        part["rating"].to_numpy())
    model = MatrixFactorisation(len(users), len(items), cfg).fit(*arrays["train"])
    scores = {name: rmse(model, *a) for name, a in arrays.items()}
    print(f"rmse train {scores['train']:.5f} test {scores['test']:.5f}")

    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    recs = {}
    for user in users.keys[:6]:
        seen = set(train.filter(pl.col("user") == user)["item"].to_list())
        recs[user] = recommend(model, users, items, seen, user, cfg.top_k)
        print(user, " ".join(f"{k}:{s:.3f}" for k, s in recs[user]))
    (out / "items.json").write_text(json.dumps(items.keys))
    (out / "metrics.json").write_text(json.dumps(scores))
    np.savetxt(out / "item_factors.csv", model.Q, delimiter=",", fmt="%.6f")


if __name__ == "__main__":
    main()
