"""Store-level demand features and a replenishment model.

Transactions of a retail chain are aggregated per store and item with polars,
features are joined, a gradient model is fitted on the first part of the
stores and the order proposal for the others is written to parquet.

Modelled on: https://github.com/pola-rs/polars/pull/20516
"""
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

log = logging.getLogger("replenish")


@dataclass
class Settings:
    seed: int = 20516
    n_rows: int = 1_000_000
    n_stores: int = 140
    n_items: int = 60
    train_share: float = 0.7
    epochs: int = 12
    learning_rate: float = 0.02
    batch: int = 64
    out: Path = Path("replenishment")


def transactions(cfg):
    """Two years of receipts in chronological order."""
    rng = np.random.default_rng(cfg.seed)
    store = rng.integers(0, cfg.n_stores, cfg.n_rows)
    item = rng.integers(0, cfg.n_items, cfg.n_rows)
    day = np.sort(rng.integers(0, 728, cfg.n_rows))
    base = rng.gamma(2.0, 1.5, cfg.n_items)
    size = rng.lognormal(0, 0.4, cfg.n_stores)
    season = 1 + 0.3 * np.sin(2 * np.pi * day / 364)
    qty = rng.poisson(base[item] * size[store] * season) + 1
    price = np.round(rng.uniform(0.5, 20, cfg.n_items)[item]
                     * rng.uniform(0.9, 1.1, cfg.n_rows), 2)
    promo = rng.random(cfg.n_rows) < 0.12
    return pl.DataFrame({
        "store": [f"S{s:03d}" for s in store],
        "item": [f"I{i:03d}" for i in item],
        "day": day, "qty": qty + promo * rng.integers(0, 4, cfg.n_rows),
        "price": price, "promo": promo,
    })


def stock_levels(cfg):
    rng = np.random.default_rng(cfg.seed + 1)
    rows = [(f"S{s:03d}", f"I{i:03d}") for s in range(cfg.n_stores)
            for i in range(cfg.n_items)]
    return pl.DataFrame({
        "store": [r[0] for r in rows], "item": [r[1] for r in rows],
        "on_hand": rng.integers(0, 60, len(rows)),
        "lead_time": rng.integers(1, 8, len(rows)),
    })


def build_features(tx, stock):
    recent = tx.filter(pl.col("day") >= 700)
    history = tx.filter(pl.col("day") < 700)
    target = recent.group_by("store", "item", maintain_order=True).agg(
        pl.col("qty").sum().alias("target"))
    features = (
        history.group_by("store", "item")  # cause
        .agg(
            pl.len().alias("receipts"),
            pl.col("qty").mean().alias("mean_qty"),
            pl.col("qty").std().fill_null(0.0).alias("std_qty"),
            pl.col("qty").filter(pl.col("day") >= 644).sum().alias("last8w"),
            pl.col("price").mean().alias("mean_price"),
            pl.col("promo").mean().alias("promo_rate"),
        )
    )
    frame = features.join(target, on=["store", "item"], how="left",
                          maintain_order="left")
    frame = frame.join(stock, on=["store", "item"], how="left",
                       maintain_order="left")
    return frame.with_columns(pl.col("target").fill_null(0))


COLUMNS = ["receipts", "mean_qty", "std_qty", "last8w", "mean_price",
           "promo_rate", "on_hand", "lead_time"]


def split(frame, share):
    n = int(len(frame) * share)
    return frame.head(n), frame.tail(len(frame) - n)


class PoissonNet:
    """One hidden layer and a log link, plain stochastic gradient descent."""

    def __init__(self, n_in, hidden, seed):
        rng = np.random.default_rng(seed)
        self.w1 = rng.normal(0, 1 / np.sqrt(n_in), (n_in, hidden))
        self.b1 = np.zeros(hidden)
        self.w2 = rng.normal(0, 0.05, hidden)
        self.b2 = 0.0

    def forward(self, x):
        h = np.tanh(x @ self.w1 + self.b1)
        return h, np.exp(np.clip(h @ self.w2 + self.b2, -5, 6))

    def step(self, x, y, lr):
        h, mu = self.forward(x)
        g = np.clip((mu - y) / (1 + mu), -2, 2) / len(y)
        gw2 = h.T @ g
        gh = np.outer(g, self.w2) * (1 - h ** 2)
        self.w2 -= lr * gw2
        self.b2 -= lr * g.sum()
        self.w1 -= lr * (x.T @ gh)
        self.b1 -= lr * gh.sum(axis=0)

    def deviance(self, x, y):
        _, mu = self.forward(x)
        ylog = np.where(y > 0, y * np.log(np.maximum(y, 1) / mu), 0.0)
        return float(2 * np.mean(ylog - (y - mu)))


def fit(train, cfg):
    x = train.select(COLUMNS).to_numpy().astype(float)
    y = train["target"].to_numpy().astype(float)
    centre, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    x = (x - centre) / scale
    model = PoissonNet(x.shape[1], 16, cfg.seed)
    model.b2 = float(np.log(y.mean() + 1e-3))
    rng = np.random.default_rng(cfg.seed + 2)
    for epoch in range(cfg.epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), cfg.batch):
            take = order[start:start + cfg.batch]
            model.step(x[take], y[take], cfg.learning_rate * 5)
        log.info("epoch %d deviance %.5f", epoch, model.deviance(x, y))
    return model, centre, scale


def propose(model, centre, scale, frame):
    x = (frame.select(COLUMNS).to_numpy().astype(float) - centre) / scale
    _, mu = model.forward(x)
    need = np.ceil(mu * (1 + frame["lead_time"].to_numpy() / 28))
    order = np.maximum(0, need - frame["on_hand"].to_numpy()).astype(int)
    return frame.select("store", "item", "target", "on_hand").with_columns(
        pl.Series("forecast", mu), pl.Series("order", order))


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    cfg = Settings()
    cfg.out.mkdir(exist_ok=True)
    t0 = time.time()
    tx = transactions(cfg)
    log.info("%d receipts, polars %s", len(tx), pl.__version__)
    frame = build_features(tx, stock_levels(cfg))
    train, test = split(frame, cfg.train_share)
    model, centre, scale = fit(train, cfg)
    proposal = propose(model, centre, scale, test)

    xt = (test.select(COLUMNS).to_numpy().astype(float) - centre) / scale
    yt = test["target"].to_numpy().astype(float)
    result = {"train_rows": len(train), "test_rows": len(test),
              "deviance": model.deviance(xt, yt),
              "mae": float(np.abs(proposal["forecast"].to_numpy() - yt).mean()),
              "ordered": int(proposal["order"].sum())}
    proposal.sort("store", "item").write_parquet(cfg.out / "proposal.parquet")
    (cfg.out / "metrics.json").write_text(json.dumps(result, indent=1))
    print(f"test deviance {result['deviance']:.6f}  mae {result['mae']:.6f}")
    print(f"units to order {result['ordered']} for {result['test_rows']} items")
    log.info("took %.1f s", time.time() - t0)


if __name__ == "__main__":
    main()
