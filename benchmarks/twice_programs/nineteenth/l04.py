"""Churn features and a baseline model from a customer event log.

Generates customers, orders and support tickets, extracts features per
customer, trains a logistic regression and writes features, scores and metrics.

Modelled on: https://github.com/fennel-ai/client/pull/342
"""
import json
import logging
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SEED = 2024
CUTOFF = datetime(2024, 1, 1, tzinfo=timezone.utc)

logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.INFO)
log = logging.getLogger("features")


class Dataset:
    """Raw tables of the shop, all of them before the cutoff."""

    def __init__(self, n_customers, rng):
        ids = np.arange(1, n_customers + 1)
        born = [datetime(1950, 1, 1, tzinfo=timezone.utc) + timedelta(days=int(d))
                for d in rng.integers(0, 55 * 365, n_customers)]
        signup = [CUTOFF - timedelta(days=int(d), minutes=int(m))
                  for d, m in zip(rng.integers(40, 1500, n_customers), rng.integers(0, 1440, n_customers))]
        self.customers = pd.DataFrame({
            "customer_id": ids,
            "dob": pd.to_datetime(born),
            "signup": pd.to_datetime(signup),
            "country": rng.choice(["DE", "FR", "NL", "PL"], n_customers, p=[0.4, 0.3, 0.2, 0.1]),
        })
        n_orders = rng.poisson(6, n_customers)
        owner = np.repeat(ids, n_orders)
        tenure = (CUTOFF - self.customers.set_index("customer_id")["signup"]).dt.total_seconds()
        when = rng.beta(1.2, 1.0, len(owner)) * tenure.loc[owner].to_numpy()
        self.orders = pd.DataFrame({
            "customer_id": owner,
            "ts": pd.to_datetime(CUTOFF) - pd.to_timedelta(when.astype(int), unit="s"),
            "amount": np.round(rng.gamma(2.0, 22.0, len(owner)), 2),
        })
        n_tickets = rng.poisson(0.8, n_customers)
        self.tickets = pd.DataFrame({
            "customer_id": np.repeat(ids, n_tickets),
            "severity": rng.integers(1, 4, int(n_tickets.sum())),
        })


class CustomerFeatures:
    def __init__(self, data):
        self.data = data

    def demographics(self):
        df = self.data.customers.set_index("customer_id")
        now = datetime.now(timezone.utc)  # cause
        years = (now - df["dob"]).dt.total_seconds() / (365.25 * 86400)
        out = pd.DataFrame({"age_years": years})
        out["tenure_days"] = (CUTOFF - df["signup"]).dt.total_seconds() / 86400
        for code in sorted(df["country"].unique()):
            out[f"country_{code}"] = (df["country"] == code).astype(int)
        return out

    def spending(self):
        orders = self.data.orders
        grouped = orders.groupby("customer_id")
        out = pd.DataFrame({
            "n_orders": grouped.size(),
            "total": grouped["amount"].sum(),
            "avg_basket": grouped["amount"].mean(),
            "recency_days": (CUTOFF - grouped["ts"].max()).dt.total_seconds() / 86400,
        })
        recent = orders[orders["ts"] >= CUTOFF - timedelta(days=90)]
        out["total_90d"] = recent.groupby("customer_id")["amount"].sum()
        return out

    def support(self):
        grouped = self.data.tickets.groupby("customer_id")["severity"]
        return pd.DataFrame({"n_tickets": grouped.size(), "max_severity": grouped.max()})

    def extract(self):
        table = self.demographics().join(self.spending()).join(self.support())
        table["recency_days"] = table["recency_days"].fillna(table["tenure_days"])
        return table.fillna(0.0).sort_index()


def make_labels(features, birth_year, rng):
    logit = (
        -0.8
        + 0.012 * (features["recency_days"] - 120)
        - 0.15 * features["n_orders"]
        + 0.4 * features["n_tickets"]
        - 0.03 * (1980 - birth_year)
    )
    p = 1.0 / (1.0 + np.exp(-logit))
    return (rng.random(len(features)) < p).astype(int)


def main():
    rng = np.random.default_rng(SEED)
    out = Path("churn_run")
    out.mkdir(exist_ok=True)

    data = Dataset(3000, rng)
    log.info("%d customers, %d orders, %d tickets", len(data.customers), len(data.orders), len(data.tickets))
    features = CustomerFeatures(data).extract()
    features.to_csv(out / "features.csv")

    birth_year = data.customers.set_index("customer_id")["dob"].dt.year
    y = make_labels(features, birth_year, rng)
    x_tr, x_te, y_tr, y_te = train_test_split(features, y, test_size=0.3, random_state=SEED, stratify=y)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(x_tr, y_tr)
    score = model.predict_proba(x_te)[:, 1]

    metrics = {
        "n_train": len(x_tr),
        "n_test": len(x_te),
        "churn_rate": float(y.mean()),
        "roc_auc": float(roc_auc_score(y_te, score)),
        "average_precision": float(average_precision_score(y_te, score)),
        "log_loss": float(log_loss(y_te, score)),
    }
    (out / "metrics.json").write_text(json.dumps(metrics, indent=2))
    pd.DataFrame({"customer_id": x_te.index, "score": score}).to_csv(out / "scores.csv", index=False)
    log.info("model trained")
    for name, value in metrics.items():
        print(f"{name:>18} {value:.4f}" if isinstance(value, float) else f"{name:>18} {value}")


if __name__ == "__main__":
    main()
