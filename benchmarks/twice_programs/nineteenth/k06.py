"""Balance a skewed regression target with SMOGN-style resampling, fit a
gradient boosting model and compare errors in the rare range of the target.

Modelled on: https://github.com/nickkunz/smogn/pull/28
"""
import json
import random as rd
from datetime import datetime

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split

RANDOM_SEED = 1
NUMERIC = ["LotArea", "OverallQual", "YearBuilt", "GrLivArea", "GarageCars"]
NOMINAL = ["Neighborhood", "SaleCondition"]


def load_housing(n=1500, seed=8):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame({
        "LotArea": rng.lognormal(9.1, 0.4, n).round(),
        "OverallQual": rng.integers(1, 11, n),
        "YearBuilt": rng.integers(1900, 2010, n),
        "GrLivArea": rng.normal(1500, 450, n).clip(400).round(),
        "GarageCars": rng.integers(0, 4, n),
        "Neighborhood": rng.choice(["NAmes", "CollgCr", "OldTown", "Edwards", "NridgHt"], n),
        "SaleCondition": rng.choice(["Normal", "Abnorml", "Partial"], n, p=[0.8, 0.1, 0.1]),
    })
    log_price = (10.2 + 0.12 * df["OverallQual"] + 0.0004 * df["GrLivArea"]
                 + 0.002 * (df["YearBuilt"] - 1900) + 0.06 * df["GarageCars"]
                 + 0.2 * (df["Neighborhood"] == "NridgHt") + rng.normal(0, 0.13, n))
    df["SalePrice"] = np.exp(log_price).round()
    return df


def relevance(y, q=(0.25, 0.5, 0.9)):
    """Piecewise linear relevance: extremes on the upper side are relevant."""
    low, mid, high = np.quantile(y, q)
    return np.interp(y, [low, mid, high], [0.0, 0.1, 1.0])


def heom(row, frame, spans):
    dist = np.zeros(len(frame))
    for c in NUMERIC:
        dist += np.abs(frame[c].to_numpy(dtype=float) - row[c]) / spans[c]
    for c in NOMINAL:
        dist += (frame[c].to_numpy() != row[c]).astype(float)
    return dist


def synthesize(row, neighbour, distance, safe, y):
    """One synthetic case: interpolation if the pair is near, jitter if not."""
    case = {}
    if distance < safe:
        weight = rd.random()  # cause
        for c in NUMERIC + [y]:
            case[c] = row[c] + weight * (neighbour[c] - row[c])
        for c in NOMINAL:
            case[c] = row[c] if weight < 0.5 else neighbour[c]
    else:
        for c in NUMERIC + [y]:
            case[c] = row[c] * (1 + np.random.normal(0, 0.02))
        for c in NOMINAL:
            case[c] = row[c]
    return case


def over_sampling(rare, y, factor, k=5):
    rare = rare.reset_index(drop=True)
    spans = {c: max(float(rare[c].max() - rare[c].min()), 1e-9) for c in NUMERIC}
    records = rare.to_dict("records")
    synth = []
    for i, row in enumerate(records):
        dist = heom(row, rare, spans)
        order = np.argsort(dist, kind="stable")[1:k + 1]
        safe = np.median(dist[order]) * 1.1
        for _ in range(factor):
            j = int(np.random.choice(order))
            synth.append(synthesize(row, records[j], dist[j], safe, y))
    return pd.DataFrame(synth)[list(rare.columns)]


def smoter(data, y, threshold=0.6, factor=2, under=0.7, random_seed=None):
    """Resample so that the relevant range of the target is better covered."""
    np.random.seed(random_seed)  # cause
    phi = relevance(data[y])
    rare, normal = data[phi >= threshold], data[phi < threshold]
    keep = np.random.choice(len(normal), size=int(under * len(normal)), replace=False)
    synth = over_sampling(rare, y, factor)
    print(f"rare {len(rare)}, normal {len(normal)} -> {len(keep)}, synthetic {len(synth)}")
    out = pd.concat([normal.iloc[np.sort(keep)], rare, synth], ignore_index=True)
    return out


def encode(df):
    x = df[NUMERIC].astype(float).copy()
    for c in NOMINAL:
        for level in sorted(df[c].unique()):
            x[f"{c}={level}"] = (df[c] == level).astype(float)
    return x


def box_plot_stats(values):
    q = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
    return {k: round(float(v), 2) for k, v in zip(["lower", "q1", "median", "q3", "upper"], q)}


def evaluate(train, test, y):
    model = GradientBoostingRegressor(n_estimators=150, max_depth=3, learning_rate=0.08,
                                      random_state=RANDOM_SEED)
    model.fit(encode(train), train[y])
    predicted = model.predict(encode(test))
    rare = (relevance(test[y]) >= 0.6)
    return {
        "mae": round(mean_absolute_error(test[y], predicted), 2),
        "mae_rare": round(mean_absolute_error(test[y][rare], predicted[rare]), 2),
    }


def main():
    housing = load_housing()
    train, test = train_test_split(housing, test_size=0.25, random_state=RANDOM_SEED)
    balanced = smoter(train, y="SalePrice", random_seed=RANDOM_SEED)
    balanced.round(4).to_csv("housing_smogn.csv", index=False)
    report = {
        "generated": datetime.now().isoformat(timespec="seconds"),
        "stats": {"original": box_plot_stats(train["SalePrice"]),
                  "smogn": box_plot_stats(balanced["SalePrice"])},
        "original": evaluate(train, test, "SalePrice"),
        "smogn": evaluate(balanced, test, "SalePrice"),
    }
    with open("report.json", "w") as handle:
        json.dump(report, handle, indent=2)
    for name in ("original", "smogn"):
        print(f"{name:9s} MAE {report[name]['mae']:10.2f}   rare MAE {report[name]['mae_rare']:10.2f}")
    print("median price:", report["stats"]["smogn"]["median"])


if __name__ == "__main__":
    main()
