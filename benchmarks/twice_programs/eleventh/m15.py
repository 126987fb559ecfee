"""Modelled on https://github.com/litestar-org/polyfactory/issues/68
Builds a synthetic customer base and reports the uplift of a mail campaign per segment.
"""
import argparse
import csv
import json
import logging
import random
import uuid
import zlib
from dataclasses import dataclass, field, fields
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

log = logging.getLogger("uplift")

COUNTRIES = ["DE", "FR", "NL", "PL", "ES", "IT"]
CHANNELS = ["search", "social", "partner", "direct"]
FIRST = ["Anna", "Ben", "Carla", "David", "Eva", "Finn", "Greta", "Hugo", "Ida", "Jan"]
LAST = ["Meyer", "Blanc", "de Vries", "Nowak", "Garcia", "Rossi", "Klein", "Petit"]


@dataclass
class Settings:
    seed: int = 5
    n_customers: int = 2500
    treatment_share: float = 0.5
    holdout_share: float = 0.25
    reference_day: str = "2023-06-30"
    out_dir: str = "uplift_out"


@dataclass
class Customer:
    customer_id: uuid.UUID
    name: str
    country: str
    channel: str
    signup: date
    orders: int
    basket: float
    newsletter: bool


class ModelFactory:
    """Creates instances of a dataclass from per-type providers."""

    model = None
    _random = random.Random()

    @classmethod
    def seed_random(cls, seed):
        cls._random.seed(seed)
        random.seed(seed)

    @classmethod
    def provider_map(cls):
        return {
            uuid.UUID: lambda: uuid.uuid4(),  # cause
            int: lambda: cls._random.randint(0, 100),
            float: lambda: cls._random.uniform(0, 1000),
            bool: lambda: cls._random.random() < 0.5,
            str: lambda: "".join(cls._random.choices("abcdefghij", k=8)),
            date: lambda: date(2020, 1, 1) + timedelta(days=cls._random.randint(0, 1200)),
        }

    @classmethod
    def build(cls, **overrides):
        providers = cls.provider_map()
        values = {}
        for f in fields(cls.model):
            if f.name in overrides:
                values[f.name] = overrides[f.name]
            elif hasattr(cls, f.name):
                values[f.name] = getattr(cls, f.name)()
            else:
                values[f.name] = providers[f.type]()
        return cls.model(**values)

    @classmethod
    def batch(cls, size):
        return [cls.build() for _ in range(size)]


class CustomerFactory(ModelFactory):
    model = Customer

    @classmethod
    def name(cls):
        return f"{cls._random.choice(FIRST)} {cls._random.choice(LAST)}"

    @classmethod
    def country(cls):
        return cls._random.choices(COUNTRIES, weights=[5, 4, 2, 3, 3, 2])[0]

    @classmethod
    def channel(cls):
        return cls._random.choice(CHANNELS)

    @classmethod
    def orders(cls):
        return int(cls._random.expovariate(0.25))

    @classmethod
    def basket(cls):
        return round(cls._random.lognormvariate(3.6, 0.5), 2)


def bucket(customer_id, salt, modulo=1000):
    return zlib.crc32(f"{salt}:{customer_id}".encode()) % modulo


def to_frame(customers, cfg):
    ref = date.fromisoformat(cfg.reference_day)
    rows = []
    for c in customers:
        rows.append(
            {
                "customer_id": str(c.customer_id),
                "country": c.country,
                "channel": c.channel,
                "tenure": (ref - c.signup).days,
                "orders": c.orders,
                "basket": c.basket,
                "newsletter": int(c.newsletter),
            }
        )
    return pd.DataFrame(rows)


def assign(frame, cfg):
    frame = frame.copy()
    frame["treated"] = [
        int(bucket(i, "campaign-23") < 1000 * cfg.treatment_share) for i in frame.customer_id
    ]
    frame["holdout"] = [int(bucket(i, "model-eval") < 1000 * cfg.holdout_share) for i in frame.customer_id]
    return frame


def simulate_response(frame, rng):
    lift = np.where(frame.channel == "social", 0.6, 0.25) + 0.3 * frame.newsletter
    logit = (
        -1.6
        + 0.05 * frame.orders
        - 0.0006 * frame.tenure
        + 0.01 * (frame.basket - 40)
        + lift * frame.treated
    )
    draw = rng.random(len(frame))
    return (draw < 1 / (1 + np.exp(-logit))).astype(int)


def uplift_table(frame, by):
    rows = []
    for key, part in frame.groupby(by):
        t = part[part.treated == 1].converted
        c = part[part.treated == 0].converted
        se = np.sqrt(t.var() / len(t) + c.var() / len(c))
        rows.append(
            {by: key, "n_treated": len(t), "n_control": len(c), "uplift": t.mean() - c.mean(), "se": se}
        )
    return pd.DataFrame(rows)


def fit_response_model(frame):
    cols = ["tenure", "orders", "basket", "newsletter", "treated"]
    x = pd.concat([frame[cols], pd.get_dummies(frame[["country", "channel"]], dtype=float)], axis=1)
    train = frame.holdout == 0
    scaler = StandardScaler().fit(x[train])
    clf = LogisticRegression(max_iter=500, random_state=0).fit(scaler.transform(x[train]), frame.converted[train])
    score = clf.predict_proba(scaler.transform(x[~train]))[:, 1]
    return roc_auc_score(frame.converted[~train], score), int(train.sum())


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--customers", type=int, default=Settings.n_customers)
    ap.add_argument("--seed", type=int, default=Settings.seed)
    args = ap.parse_args()
    cfg = Settings(n_customers=args.customers, seed=args.seed)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")

    ModelFactory.seed_random(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    customers = CustomerFactory.batch(cfg.n_customers)
    frame = assign(to_frame(customers, cfg), cfg)
    frame["converted"] = simulate_response(frame, rng)
    log.info("built %d customers", len(frame))
    print("mean basket %.3f, mean orders %.3f" % (frame.basket.mean(), frame.orders.mean()))
    print("treated %d of %d" % (frame.treated.sum(), len(frame)))

    for by in ("channel", "country"):
        table = uplift_table(frame, by)
        table.to_csv(out / f"uplift_{by}.csv", index=False, float_format="%.5f")
        print(table.to_string(index=False, float_format=lambda v: f"{v:.4f}"))
    auc, n_train = fit_response_model(frame)
    print(f"response model: train rows {n_train}, holdout auc {auc:.5f}")
    (out / "summary.json").write_text(json.dumps({"auc": auc, "n_train": n_train, "seed": cfg.seed}))


if __name__ == "__main__":
    main()
