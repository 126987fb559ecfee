"""https://github.com/python/cpython/issues/99540 - hash(None) was its address before Python 3.12, so with a fixed
PYTHONHASHSEED a set of keys that contain None still has another order in each process."""
import datetime
import json
import random
import time
from dataclasses import dataclass
from typing import Optional

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss, roc_auc_score


@dataclass(frozen=True)
class Visit:
    city: str
    campaign: Optional[str]
    device: Optional[str]
    minutes: float
    bought: int


CITIES = ["Oslo", "Bergen", "Turku", "Gdansk", "Tartu", "Malmo", "Aarhus"]
CAMPAIGNS = ["spring", "mail", "radio", None]
DEVICES = ["phone", "tablet", "desktop", None]


def read_visits(n, seed):
    rng = random.Random(seed)
    effect = {c: rng.gauss(0, 0.8) for c in CITIES}
    visits = []
    for _ in range(n):
        city, campaign, device = rng.choice(CITIES), rng.choice(CAMPAIGNS), rng.choice(DEVICES)
        minutes = rng.expovariate(0.2)
        z = effect[city] + (0.7 if campaign else -0.4) + (0.5 if device == "desktop" else 0) + 0.08 * minutes - 0.9
        visits.append(Visit(city, campaign, device, minutes, int(rng.random() < 1 / (1 + np.exp(-z)))))
    return visits


class CrossFeatures:
    """One-hot codes of the (campaign, device) and (city, campaign) pairs seen in training."""

    def __init__(self, min_count=20):
        self.min_count = min_count
        self.columns = {}

    def _keys(self, v):
        return (v.campaign, v.device), (v.city, v.campaign)

    def fit(self, visits):
        seen, frequent = {}, set()
        for v in visits:
            for key in self._keys(v):
                seen[key] = seen.get(key, 0) + 1
                if seen[key] >= self.min_count:
                    frequent.add(key)
        self.columns = {key: i for i, key in enumerate(frequent)}  # cause
        return self

    def transform(self, visits):
        x = np.zeros((len(visits), len(self.columns) + 1))
        for row, v in zip(x, visits):
            row[-1] = np.log1p(v.minutes)
            for key in self._keys(v):
                if key in self.columns:
                    row[self.columns[key]] = 1.0
        return x


def main():
    random.seed(0)
    np.random.seed(0)
    started = time.time()
    print("today is", datetime.date.today())
    visits = read_visits(3600, seed=12)
    train, test = visits[:2700], visits[2700:]
    cross = CrossFeatures().fit(train)
    xtr, xte = cross.transform(train), cross.transform(test)
    ytr, yte = np.array([v.bought for v in train]), np.array([v.bought for v in test])
    print(f"{xtr.shape[1]} columns, {time.time() - started:.2f}s")
    out = {}
    for name, model in {
        "forest": RandomForestClassifier(120, max_features=0.3, min_samples_leaf=4, random_state=1),
        "boosting": HistGradientBoostingClassifier(max_iter=60, max_features=0.4, random_state=1),
    }.items():
        t0 = time.time()
        p = model.fit(xtr, ytr).predict_proba(xte)[:, 1]
        out[name] = {"auc": float(roc_auc_score(yte, p)), "log_loss": float(log_loss(yte, p))}
        print(f"{name}: auc {out[name]['auc']:.5f} log loss {out[name]['log_loss']:.5f} in {time.time() - t0:.2f}s")
    with open("models.json", "w") as f:
        json.dump(out, f, indent=2)


if __name__ == "__main__":
    main()
