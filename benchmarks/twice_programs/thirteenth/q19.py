"""Customer level features from transactions and an online model on top.

Report: https://github.com/pola-rs/polars/issues/25202
Transactions are aggregated per customer and the frame is handed to a seeded learner.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

log = logging.getLogger("features")


@dataclass
class Config:
    customers: int = 15_000
    rows: int = 900_000
    epochs: int = 6
    batch: int = 256
    seed: int = 135
    out: str = "features_out"


def transactions(cfg: Config) -> pl.DataFrame:
    rng = np.random.default_rng(cfg.seed)
    weight = rng.gamma(1.2, 1.0, cfg.customers)
    who = rng.choice(cfg.customers, size=cfg.rows, p=weight / weight.sum())
    return pl.DataFrame(
        {
            "customer": who.astype(np.int64),
            "cents": (rng.lognormal(3.0, 0.9, cfg.rows) * 100).astype(np.int64),
            "day": rng.integers(0, 365, cfg.rows),
            "channel": rng.integers(0, 4, cfg.rows),
        }
    )


def build_features(tx: pl.DataFrame) -> pl.DataFrame:
    """One row per customer."""
    return (
        tx.lazy()
        .group_by("customer")  # cause
        .agg(
            pl.len().alias("n"),
            pl.col("cents").sum().alias("spend"),
            pl.col("cents").max().alias("largest"),
            pl.col("day").min().alias("first_day"),
            pl.col("day").max().alias("last_day"),
            (pl.col("channel") == 0).sum().alias("web"),
            (pl.col("channel") == 3).sum().alias("store"),
        )
        .with_columns(
            (pl.col("spend") / pl.col("n")).alias("basket"),
            (pl.col("last_day") - pl.col("first_day")).alias("tenure"),
        )
        .collect()
    )


def target(features: pl.DataFrame) -> np.ndarray:
    """Churn label, a fixed function of the customer and the features."""
    c = features["customer"].to_numpy()
    noise = ((c * 2654435761) % 1000) / 1000.0
    score = features["tenure"].to_numpy() / 365 + 0.2 * np.log1p(features["n"].to_numpy()) + 0.6 * noise
    return (score < 2.0).astype(int)


class OnlineModel:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.clf = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=cfg.seed, shuffle=False)

    def fit(self, x, y):
        rng = np.random.default_rng(self.cfg.seed + 1)
        for _ in range(self.cfg.epochs):
            order = rng.permutation(len(x))
            for start in range(0, len(x), self.cfg.batch):
                rows = order[start : start + self.cfg.batch]
                self.clf.partial_fit(x[rows], y[rows], classes=[0, 1])
        return self

    def score(self, x):
        return self.clf.decision_function(x)


def split(n: int, seed: int):
    rng = np.random.default_rng(seed + 2)
    mask = rng.random(n) < 0.8
    return np.flatnonzero(mask), np.flatnonzero(~mask)


def run(cfg: Config) -> dict:
    t0 = time.perf_counter()
    tx = transactions(cfg)
    log.info("%d transactions in %.2fs", tx.height, time.perf_counter() - t0)
    features = build_features(tx)
    log.info("%d customers", features.height)
    columns = [c for c in features.columns if c != "customer"]
    x = StandardScaler().fit_transform(features.select(columns).to_numpy().astype(float))
    y = target(features)
    train, test = split(len(x), cfg.seed)
    model = OnlineModel(cfg).fit(x[train], y[train])
    score = model.score(x[test])
    top = features["customer"].to_numpy()[test][np.argsort(-score, kind="stable")[:25]]
    return {
        "auc": round(float(roc_auc_score(y[test], score)), 8),
        "coef": [round(float(c), 8) for c in model.clf.coef_[0]],
        "contact_list": [int(c) for c in top],
        "test_customers": int(len(test)),
    }


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=3_000_000)
    ap.add_argument("--epochs", type=int, default=Config.epochs)
    ns = ap.parse_args()
    cfg = Config(rows=ns.rows, epochs=ns.epochs)
    report = run(cfg)
    out = Path(cfg.out)
    out.mkdir(exist_ok=True)
    (out / "model.json").write_text(json.dumps(report, indent=1))
    (out / "contact_list.txt").write_text("\n".join(map(str, report["contact_list"])) + "\n")
    print("auc", report["auc"])
    print("contact", report["contact_list"][:8])


if __name__ == "__main__":
    main()
