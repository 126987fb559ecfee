"""https://github.com/pola-rs/polars/issues/7935 - 'Stable sort and stable aggregate': polars gives the groups of
group_by in an order that varies (random hash keys, threads) unless maintain_order=True; the later sort leaves ties."""
import json
import logging
import platform
import time

import numpy as np
import polars as pl
from sklearn.linear_model import SGDRegressor
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("churn")
SEED = 20


def make_events(n_customers=900, n_events=24000):
    rng = np.random.default_rng(SEED)
    activity = rng.gamma(2.0, 1.0, n_customers)
    cust = rng.choice(n_customers, n_events, p=activity / activity.sum())
    return pl.DataFrame({
        "customer": [f"C{c:05d}" for c in cust],
        "amount": np.round(rng.lognormal(2.5, 0.7, n_events), 2),
        "items": rng.integers(1, 9, n_events),
        "weekday": rng.integers(0, 7, n_events),
        "returned": rng.random(n_events) < 0.08,
    })


def customer_features(events):
    return (
        events.lazy()
        .with_columns((pl.col("amount") / pl.col("items")).alias("unit_price"))
        .group_by("customer")  # cause
        .agg(
            pl.len().alias("visits"),
            pl.col("items").sum().alias("items"),
            pl.col("unit_price").median().alias("unit_price"),
            pl.col("amount").max().alias("biggest"),
            (pl.col("weekday") >= 5).sum().alias("weekend"),
            pl.col("returned").any().cast(pl.Int8).alias("has_return"),
        )
        .sort("visits", descending=True, maintain_order=True)
        .collect()
    )


def spend_target(features):
    rng = np.random.default_rng(SEED + 1)
    noise = {f"C{i:05d}": v for i, v in enumerate(rng.normal(0, 3.0, 5000))}
    base = 0.8 * features["visits"].to_numpy() + 0.4 * features["unit_price"].to_numpy() - 2.0 * features["has_return"].to_numpy()
    return base + np.array([noise[c] for c in features["customer"]])


class Report:
    def __init__(self, path):
        self.path, self.data = path, {}

    def add(self, **values):
        self.data.update(values)
        log.info(" ".join(f"{k}={v}" for k, v in values.items()))

    def save(self):
        with open(self.path, "w") as f:
            json.dump(self.data, f, indent=2, sort_keys=True)


def main():
    np.random.seed(SEED)
    pl.set_random_seed(SEED)
    t0 = time.monotonic()
    log.info("host %s polars %s", platform.node(), pl.__version__)
    events = make_events()
    feats = customer_features(events)
    y = spend_target(feats)
    x = feats.drop("customer").to_numpy().astype(float)
    report = Report("report.json")
    report.add(customers=len(feats))

    folds = np.random.permutation(len(x)) % 5
    scores = []
    for k in range(5):
        model = make_pipeline(StandardScaler(), SGDRegressor(max_iter=40, tol=None, eta0=0.01, random_state=SEED))
        model.fit(x[folds != k], y[folds != k])
        pred = model.predict(x[folds == k])
        scores.append((r2_score(y[folds == k], pred), mean_absolute_error(y[folds == k], pred)))
        log.info("fold %d done after %.2fs", k, time.monotonic() - t0)
    report.add(r2=float(np.mean([s[0] for s in scores])), mae=float(np.mean([s[1] for s in scores])))
    report.add(coefficients=[float(c) for c in model[-1].coef_])
    report.save()


if __name__ == "__main__":
    main()
