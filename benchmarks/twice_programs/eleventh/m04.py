"""Customer session features and a purchase model.

Modelled on https://github.com/pola-rs/polars/issues/22720
Builds one table of per-customer session features and trains a gradient model on it.
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
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

log = logging.getLogger("sessions")

FEATURES = ["n_events", "n_sessions", "mean_gap", "spend", "max_spend", "weekend_share", "last_trend"]


@dataclass
class Config:
    seed: int = 123
    customers: int = 300
    mean_events: int = 18
    session_gap: float = 30.0
    train_share: float = 0.7
    epochs: int = 12
    out_dir: str = "session_model"


def generate_events(cfg):
    rng = np.random.default_rng(cfg.seed)
    taste = rng.gamma(2.0, 1.0, size=cfg.customers)
    chunks = []
    for c in range(cfg.customers):
        n = int(rng.poisson(cfg.mean_events)) + 3
        gaps = rng.exponential(12.0 + 8.0 * rng.random(), size=n)
        minutes = np.cumsum(gaps) + rng.integers(0, 5000)
        spend = np.round(rng.lognormal(1.0 + 0.2 * taste[c], 0.6, size=n), 2)
        chunks.append(pl.DataFrame({
            "customer": [f"C{c:04d}"] * n,
            "minute": minutes,
            "spend": spend,
        }))
    events = pl.concat(chunks)
    order = rng.permutation(events.height)
    purchase = (taste + rng.normal(0, 0.9, size=cfg.customers) > 2.0).astype(int)
    labels = pl.DataFrame({
        "customer": [f"C{c:04d}" for c in range(cfg.customers)],
        "purchased": purchase,
    })
    return events[order.tolist()], labels


def summarise_customer(frame, session_gap):
    frame = frame.sort("minute")
    minutes = frame["minute"].to_numpy()
    spend = frame["spend"].to_numpy()
    gaps = np.diff(minutes)
    days = (minutes // 1440).astype(int)
    half = len(spend) // 2
    return pl.DataFrame({
        "customer": [frame["customer"][0]],
        "n_events": [float(frame.height)],
        "n_sessions": [float((gaps > session_gap).sum() + 1)],
        "mean_gap": [float(gaps.mean())],
        "spend": [float(spend.sum())],
        "max_spend": [float(spend.max())],
        "weekend_share": [float(np.isin(days % 7, (5, 6)).mean())],
        "last_trend": [float(spend[half:].mean() - spend[:half].mean())],
    })


def build_features(events, cfg):
    started = time.perf_counter()
    grouped = events.group_by("customer")  # cause
    features = grouped.map_groups(lambda g: summarise_customer(g, cfg.session_gap))  # cause
    log.info("features for %d customers (%.2fs)", features.height, time.perf_counter() - started)
    return features


def attach_labels(features, labels):
    lookup = dict(zip(labels["customer"].to_list(), labels["purchased"].to_list()))
    return features.with_columns(
        pl.Series("purchased", [lookup[c] for c in features["customer"].to_list()]))


def split(table, cfg):
    cut = int(table.height * cfg.train_share)
    return table[:cut], table[cut:]


def to_arrays(table):
    return table.select(FEATURES).to_numpy(), table["purchased"].to_numpy()


class PurchaseModel:
    def __init__(self, cfg):
        self.cfg = cfg
        self.scaler = StandardScaler()
        self.clf = SGDClassifier(loss="log_loss", alpha=1e-3, learning_rate="constant",
                                 eta0=0.02, random_state=cfg.seed)
        self.curve = []

    def fit(self, X, y):
        Z = self.scaler.fit_transform(X)
        rng = np.random.default_rng(self.cfg.seed)
        for epoch in range(self.cfg.epochs):
            order = rng.permutation(len(y))
            self.clf.partial_fit(Z[order], y[order], classes=[0, 1])
            loss = log_loss(y, self.clf.predict_proba(Z)[:, 1], labels=[0, 1])
            self.curve.append(float(loss))
            log.debug("epoch %d loss %.5f", epoch, loss)
        return self

    def predict(self, X):
        return self.clf.predict_proba(self.scaler.transform(X))[:, 1]


def decile_table(scores, truth):
    order = np.argsort(-scores, kind="stable")
    rows = []
    for number, block in enumerate(np.array_split(order, 5), start=1):
        rows.append({"bucket": number, "n": int(len(block)),
                     "rate": round(float(truth[block].mean()), 4),
                     "mean_score": round(float(scores[block].mean()), 5)})
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=Config.seed)
    parser.add_argument("--customers", type=int, default=Config.customers)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.INFO,
                        format="%(asctime)s %(levelname)s %(message)s")
    cfg = Config(seed=args.seed, customers=args.customers)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    events, labels = generate_events(cfg)
    log.info("%d events", events.height)
    table = attach_labels(build_features(events, cfg), labels)
    table.write_csv(out / "features.csv", float_precision=6)

    train, test = split(table, cfg)
    X_train, y_train = to_arrays(train)
    X_test, y_test = to_arrays(test)
    log.info("train %d (rate %.3f), test %d (rate %.3f)", len(y_train), y_train.mean(),
             len(y_test), y_test.mean())
    model = PurchaseModel(cfg).fit(X_train, y_train)
    scores = model.predict(X_test)
    report = {
        "auc": round(float(roc_auc_score(y_test, scores)), 5),
        "log_loss": round(float(log_loss(y_test, scores)), 5),
        "train_curve": [round(v, 6) for v in model.curve],
        "weights": dict(zip(FEATURES, model.clf.coef_[0].round(5).tolist())),
        "buckets": decile_table(scores, y_test),
    }
    (out / "report.json").write_text(json.dumps(report, indent=2))
    print(f"test customers {len(y_test)}")
    print(f"auc            {report['auc']:.5f}")
    print(f"log loss       {report['log_loss']:.5f}")
    for row in report["buckets"]:
        print(f"  bucket {row['bucket']}: rate {row['rate']:.3f} score {row['mean_score']:.4f}")


if __name__ == "__main__":
    main()
