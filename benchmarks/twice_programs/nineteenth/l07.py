"""Fraud detection on imbalanced card transactions with under-sampling.

Generates transactions, balances the training part with several resamplers,
fits a classifier for each of them and writes a comparison table.

Modelled on: https://github.com/scikit-learn-contrib/imbalanced-learn/issues/39
"""
import csv
import json
from pathlib import Path
from random import sample

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

SEED = 3
OUT = Path("balance_out")


def make_transactions(n, fraud_share, rng):
    amount = rng.lognormal(3.2, 1.0, n)
    hour = rng.integers(0, 24, n)
    distance = rng.exponential(12.0, n)
    age = rng.gamma(3.0, 400.0, n)
    merchant = rng.integers(0, 8, n)
    logit = (
        0.5 * (np.log(amount) - 3.2)
        + 0.05 * distance
        - 0.0006 * age
        + 0.9 * ((hour < 5) | (hour > 22))
        + 0.5 * np.isin(merchant, (2, 5))
        + rng.normal(0.0, 0.8, n)
    )
    cut = np.quantile(logit, 1.0 - fraud_share)
    y = (logit > cut).astype(int)
    x = np.column_stack([amount, hour, distance, age, merchant])
    return x, y


class Resampler:
    """Base class: knows the classes and draws from a seeded state."""

    name = "none"

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, x, y):
        np.random.seed(self.random_state)
        labels, counts = np.unique(y, return_counts=True)
        self.minority = labels[np.argmin(counts)]
        self.counts = dict(zip(labels.tolist(), counts.tolist()))
        return self

    def resample(self, x, y):
        return x, y

    def fit_resample(self, x, y):
        return self.fit(x, y).resample(x, y)


class OverSampler(Resampler):
    name = "over"

    def resample(self, x, y):
        xs, ys = [x], [y]
        target = max(self.counts.values())
        for label, count in self.counts.items():
            if count < target:
                rows = np.flatnonzero(y == label)
                pick = np.random.choice(rows, target - count)
                xs.append(x[pick])
                ys.append(y[pick])
        return np.concatenate(xs), np.concatenate(ys)


class UnderSampler(Resampler):
    name = "under"

    def __init__(self, ratio=1.0, replacement=False, random_state=None):
        super().__init__(random_state)
        self.ratio = ratio
        self.replacement = replacement

    def resample(self, x, y):
        n = int(self.ratio * self.counts[int(self.minority)])
        xs, ys = [x[y == self.minority]], [y[y == self.minority]]
        for label, count in self.counts.items():
            if label == self.minority:
                continue
            if self.replacement:
                index = np.random.randint(0, count, n)
            else:
                index = sample(range(count), min(n, count))  # cause
            xs.append(x[y == label][index])
            ys.append(y[y == label][index])
        return np.concatenate(xs), np.concatenate(ys)


class Smote(Resampler):
    name = "smote"

    def __init__(self, k=5, random_state=None):
        super().__init__(random_state)
        self.k = k

    def resample(self, x, y):
        small = x[y == self.minority]
        need = max(self.counts.values()) - len(small)
        near = NearestNeighbors(n_neighbors=self.k + 1).fit(small)
        neighbours = near.kneighbors(small, return_distance=False)[:, 1:]
        base = np.random.randint(0, len(small), need)
        other = neighbours[base, np.random.randint(0, self.k, need)]
        step = np.random.random((need, 1))
        new = small[base] + step * (small[other] - small[base])
        return np.vstack([x, new]), np.concatenate([y, np.full(need, self.minority)])


def evaluate(resampler, x_tr, y_tr, x_te, y_te):
    xb, yb = resampler.fit_resample(x_tr, y_tr)
    model = RandomForestClassifier(n_estimators=40, max_depth=8, random_state=SEED, n_jobs=1)
    model.fit(xb, yb)
    prob = model.predict_proba(x_te)[:, 1]
    pred = (prob >= 0.5).astype(int)
    return {
        "resampler": resampler.name,
        "n_train": len(yb),
        "share_positive": round(float(yb.mean()), 4),
        "average_precision": round(float(average_precision_score(y_te, prob)), 6),
        "balanced_accuracy": round(float(balanced_accuracy_score(y_te, pred)), 6),
        "f1": round(float(f1_score(y_te, pred)), 6),
        "mean_amount_negatives": round(float(xb[yb == 0, 0].mean()), 4),
    }, prob


def main():
    np.random.seed(SEED)
    rng = np.random.default_rng(SEED)
    OUT.mkdir(exist_ok=True)
    x, y = make_transactions(9000, 0.03, rng)
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.35, random_state=SEED, stratify=y)
    print(f"train {len(y_tr)} ({y_tr.sum()} fraud), test {len(y_te)} ({y_te.sum()} fraud)")

    rows, probs = [], {}
    for resampler in (
        Resampler(SEED),
        OverSampler(SEED),
        UnderSampler(ratio=1.5, random_state=SEED),
        Smote(random_state=SEED),
    ):
        row, prob = evaluate(resampler, x_tr, y_tr, x_te, y_te)
        rows.append(row)
        probs[resampler.name] = prob
        print("  ".join(f"{k}={v}" for k, v in row.items()))

    with open(OUT / "comparison.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    np.savez(OUT / "probabilities.npz", **probs)
    best = max(rows, key=lambda r: r["average_precision"])
    (OUT / "best.json").write_text(json.dumps(best, indent=2))
    print("best:", best["resampler"])


if __name__ == "__main__":
    main()
