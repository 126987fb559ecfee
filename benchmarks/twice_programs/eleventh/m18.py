"""Modelled on https://github.com/ppdebreuck/modnet/issues/105
Ranks material descriptors by relevance and redundancy and fits a band gap model on the best ones.
"""
import argparse
import json
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_selection import mutual_info_regression
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

LOG = logging.getLogger("descriptors")


@dataclass
class Params:
    seed: int = 11
    n_materials: int = 320
    n_latent: int = 6
    n_features: int = 42
    n_select: int = 12
    folds: int = 4
    alpha: float = 1.0


FAMILIES = ["electronegativity", "radius", "valence", "density", "bond", "symmetry"]


def make_materials(p):
    """Descriptors on a coarse grid, as tabulated element properties are."""
    rng = np.random.default_rng(p.seed)
    latent = rng.normal(size=(p.n_materials, p.n_latent))
    cols = {}
    for j in range(p.n_features):
        fam = j % p.n_latent
        mix = rng.normal(0, 0.25, p.n_latent)
        mix[fam] += 1.0
        raw = latent @ mix + rng.normal(0, 0.6, p.n_materials)
        cols[f"{FAMILIES[fam]}_{j // p.n_latent}"] = np.round(raw * 2) / 2
    x = pd.DataFrame(cols)
    gap = 2.2 + 0.9 * latent[:, 0] - 0.6 * np.abs(latent[:, 1]) + 0.5 * np.sin(2 * latent[:, 2])
    gap = np.clip(gap + rng.normal(0, 0.3, p.n_materials), 0, None)
    y = pd.Series(np.round(gap, 1), name="band_gap")
    x.index = y.index = [f"mat-{i:04d}" for i in range(p.n_materials)]
    return x, y


def drop_uninformative(x, min_unique=3, max_share=0.95):
    keep = []
    for c in x.columns:
        counts = x[c].value_counts(normalize=True)
        if len(counts) >= min_unique and counts.iloc[0] <= max_share:
            keep.append(c)
    return x[keep]


def entropy(col):
    p = col.value_counts(normalize=True).to_numpy()
    return float(-(p * np.log(p)).sum())


def nmi_target(x, y):
    """Normalised mutual information of each descriptor with the target."""
    mi = mutual_info_regression(x, y)  # cause
    hy = entropy(y)
    norm = np.array([0.5 * (entropy(x[c]) + hy) for c in x.columns])
    return pd.Series(mi / norm, index=x.columns).sort_values(ascending=False, kind="stable")


def cross_redundancy(x):
    """Squared correlation between descriptors as redundancy measure."""
    return x.corr().pow(2)


def select(relevance, redundancy, n, p_exp=1.5, c=0.2):
    """Relevance-redundancy forward selection."""
    chosen = [relevance.index[0]]
    left = list(relevance.index[1:])
    while len(chosen) < n and left:
        best, best_score = None, -np.inf
        for f in left:
            red = redundancy.loc[f, chosen].max()
            score = relevance[f] / (red**p_exp + c)
            if score > best_score:
                best, best_score = f, score
        chosen.append(best)
        left.remove(best)
    return chosen


def cross_validate(x, y, p):
    pred = pd.Series(index=y.index, dtype=float)
    for fold, (tr, te) in enumerate(KFold(p.folds, shuffle=True, random_state=p.seed).split(x)):
        sc = StandardScaler().fit(x.iloc[tr])
        model = Ridge(alpha=p.alpha).fit(sc.transform(x.iloc[tr]), y.iloc[tr])
        pred.iloc[te] = model.predict(sc.transform(x.iloc[te]))
        LOG.info("fold %d done", fold)
    return pred


def learning_curve(x, y, chosen, p):
    rows = []
    for n in range(2, len(chosen) + 1, 2):
        pred = cross_validate(x[chosen[:n]], y, p)
        rows.append({"n": n, "mae": mean_absolute_error(y, pred), "r2": r2_score(y, pred)})
    return pd.DataFrame(rows)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--select", type=int, default=Params.n_select)
    args = ap.parse_args()
    p = Params(n_select=args.select)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")

    x, y = make_materials(p)
    x = drop_uninformative(x)
    print(f"{len(x)} materials, {x.shape[1]} descriptors, mean gap {y.mean():.4f}")

    relevance = nmi_target(x, y)
    print("most relevant:")
    for name, value in relevance.head(8).items():
        print(f"  {name:<22}{value:.6f}")
    chosen = select(relevance, cross_redundancy(x), p.n_select)
    print("selected:", ", ".join(chosen))

    curve = learning_curve(x, y, chosen, p)
    print(curve.to_string(index=False, float_format=lambda v: f"{v:.5f}"))
    best = curve.loc[curve.mae.idxmin()]
    final = cross_validate(x[chosen[: int(best.n)]], y, p)

    relevance.rename("nmi").to_csv("relevance.csv", float_format="%.6f")
    curve.to_csv("curve.csv", index=False)
    pd.DataFrame({"band_gap": y, "predicted": final.round(5)}).to_csv("predictions.csv")
    Path("selected.json").write_text(
        json.dumps({"selected": chosen, "n_best": int(best.n), "mae": float(best.mae)}, indent=1)
    )
    family = pd.Series([c.rsplit("_", 1)[0] for c in chosen]).value_counts().sort_index()
    print("by family:", family.to_dict())
    print(f"best n={int(best.n)} mae={best.mae:.5f} r2={best.r2:.5f}")


if __name__ == "__main__":
    main()
