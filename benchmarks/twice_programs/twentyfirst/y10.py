"""Trait prediction from a genotype panel with gradient boosting.

Loads the panel, works out which columns hold genotypes or other categorical
codes, trains a CatBoost regressor on them and writes the cross-validated
scores, the predictions and the most important markers.

Modelled on: https://github.com/catboost/catboost/issues/1483
"""
import json
import logging
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
from catboost import CatBoostRegressor, Pool

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("panel")

SEED = 2017
N_PLANTS = 420
N_MARKERS = 1100


# --------------------------------------------------------------------------
# panel
# --------------------------------------------------------------------------
def make_panel(seed):
    """Genotypes in linkage blocks, a few field covariates and a trait."""
    rng = np.random.default_rng(seed)
    cols, geno = {}, []
    pos = 0
    while len(geno) < N_MARKERS:
        block = int(rng.integers(4, 14))
        anchor = rng.binomial(2, rng.uniform(0.15, 0.5), N_PLANTS)
        for _ in range(min(block, N_MARKERS - len(geno))):
            g = anchor.copy()
            flip = rng.random(N_PLANTS) < rng.uniform(0.03, 0.3)
            g[flip] = rng.integers(0, 3, int(flip.sum()))
            chrom = len(geno) // 160 + 1
            pos += int(rng.integers(500, 9000))
            cols[f"S{chrom}_{pos}"] = g.astype(np.int8)
            geno.append(g)
    geno = np.array(geno)
    qtl = rng.choice(N_MARKERS, 35, replace=False)
    trait = (geno[qtl] * rng.normal(0, 1, (35, 1))).sum(axis=0)
    rainfall = rng.normal(620, 40, N_PLANTS)
    site = rng.integers(0, 6, N_PLANTS)
    trait = trait + 0.02 * (rainfall - 620) + 0.4 * site + rng.normal(0, 1.5, N_PLANTS)
    cols["rainfall"] = rainfall
    cols["soil_ph"] = rng.normal(6.4, 0.5, N_PLANTS)
    cols["site"] = site.astype(np.int64)
    cols["row_type"] = rng.integers(0, 3, N_PLANTS).astype(np.int8)
    df = pd.DataFrame(cols)
    df["trait"] = trait
    return df


# --------------------------------------------------------------------------
# column detection
# --------------------------------------------------------------------------
@dataclass(eq=False)
class Column:
    name: str
    dtype: str
    levels: int
    missing: int

    @property
    def is_marker(self):
        return self.name[0] == "S" and "_" in self.name


def describe(df):
    return [Column(c, str(df[c].dtype), int(df[c].nunique()), int(df[c].isna().sum()))
            for c in df.columns if c != "trait"]


class ColumnSelector:
    """Finds the columns the model should treat as codes."""

    def __init__(self, max_levels=8, code_types=("int8", "category", "object")):
        self.max_levels = max_levels
        self.code_types = code_types

    def by_type(self, columns):
        return {c for c in columns if c.dtype in self.code_types}

    def by_levels(self, columns):
        return {c for c in columns if c.levels <= self.max_levels}

    def numeric(self, columns):
        return [c for c in columns if c.dtype.startswith("float")]

    def categorical(self, columns):
        found = self.by_type(columns) | self.by_levels(columns)
        return [c for c in found if c.missing == 0 and c.levels > 1]  # cause


# --------------------------------------------------------------------------
# model
# --------------------------------------------------------------------------
def folds(n, k, seed):
    order = np.random.default_rng(seed).permutation(n)
    return [np.sort(p) for p in np.array_split(order, k)]


def fit(train, valid):
    model = CatBoostRegressor(iterations=240, depth=3, learning_rate=0.12, rsm=0.15, l2_leaf_reg=4.0,
                              random_seed=SEED, loss_function="RMSE", thread_count=1, verbose=False,
                              allow_writing_files=False)
    return model.fit(train, eval_set=valid, use_best_model=True)


def matrix(df, columns):
    return df[[c.name for c in columns]].to_numpy(dtype=np.float32)


def cross_validate(df, columns, k=3):
    x, y = matrix(df, columns), df["trait"].to_numpy()
    names = [c.name for c in columns]
    oof, scores = np.zeros(len(y)), []
    gain = pd.Series(0.0, index=names)
    for i, test in enumerate(folds(len(y), k, SEED)):
        train = np.setdiff1d(np.arange(len(y)), test)
        cut = int(0.85 * len(train))
        inner = np.random.default_rng(SEED + i).permutation(train)
        tr, va = inner[:cut], inner[cut:]
        model = fit(Pool(x[tr], y[tr], feature_names=names), Pool(x[va], y[va], feature_names=names))
        oof[test] = model.predict(x[test])
        rmse = float(np.sqrt(((oof[test] - y[test]) ** 2).mean()))
        scores.append({"fold": i, "rmse": rmse, "trees": int(model.tree_count_)})
        gain += pd.Series(model.get_feature_importance(), index=names)
        log.info("fold %d: rmse %.5f with %d trees", i, rmse, model.tree_count_)
    return oof, scores, (gain / k).sort_index()


def main():
    t0 = time.perf_counter()
    df = make_panel(SEED)
    columns = describe(df)
    selector = ColumnSelector()
    cats, nums = selector.categorical(columns), selector.numeric(columns)
    log.info("%d coded columns (%d markers), %d numeric", len(cats), sum(c.is_marker for c in cats), len(nums))
    oof, scores, gain = cross_validate(df, nums + cats)
    y = df["trait"].to_numpy()
    top = gain.sort_values(ascending=False, kind="stable").head(15)
    result = {"folds": scores, "rmse": float(np.sqrt(((oof - y) ** 2).mean())),
              "accuracy_r": float(np.corrcoef(oof, y)[0, 1]),
              "top_markers": {k: round(float(v), 6) for k, v in top.items()}}
    with open("scores.json", "w") as fh:
        json.dump(result, fh, indent=1)
    pd.DataFrame({"trait": y, "predicted": oof}).to_csv("predictions.csv", index_label="plant")
    print(f"rmse {result['rmse']:.6f}  r {result['accuracy_r']:.6f}")
    for k, v in list(result["top_markers"].items())[:6]:
        print(f"  {k:<14s} {v:.5f}")
    log.info("finished in %.2f s", time.perf_counter() - t0)


if __name__ == "__main__":
    main()
