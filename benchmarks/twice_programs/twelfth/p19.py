"""Benchmark of regression pipelines on a table of composite materials.

Modelled on https://github.com/hackingmaterials/automatminer/issues/160
The benchmark function split the shuffled dataframe anew at each call, so two models never saw the same test set.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

log = logging.getLogger("matbench")
ELEMENTS = ["Al", "Cu", "Fe", "Mg", "Ni", "Si", "Ti", "Zn"]


@dataclass
class Config:
    n_samples: int = 360
    test_spec: float = 0.2
    target: str = "gap"
    seed: int = 20190115
    out: str = "benchmark.json"


PROPERTIES = {
    "Al": (1.61, 26.98, 933), "Cu": (1.90, 63.55, 1358), "Fe": (1.83, 55.85, 1811),
    "Mg": (1.31, 24.31, 923), "Ni": (1.91, 58.69, 1728), "Si": (1.90, 28.09, 1687),
    "Ti": (1.54, 47.87, 1941), "Zn": (1.65, 65.38, 693),
}


def make_dataset(cfg):
    rng = np.random.default_rng(cfg.seed)
    rows = []
    for i in range(cfg.n_samples):
        picks = rng.choice(len(ELEMENTS), size=rng.integers(2, 4), replace=False)
        frac = rng.dirichlet(np.ones(len(picks)))
        formula = "".join(f"{ELEMENTS[p]}{f:.2f}" for p, f in zip(picks, frac))
        props = np.array([PROPERTIES[ELEMENTS[p]] for p in picks])
        mean = frac @ props
        gap = (
            2.5 * abs(props[:, 0] - mean[0]) @ frac * 4
            + 0.0006 * mean[2]
            - 0.01 * mean[1]
            + rng.normal(scale=0.08)
        )
        rows.append({"id": f"m{i:04d}", "formula": formula, "gap": gap})
    return pd.DataFrame(rows)


class Featurizer:
    """Fraction-weighted statistics of the element properties."""

    names = ("X", "mass", "melt")

    def transform(self, df):
        feats = [self._one(f) for f in df["formula"]]
        return pd.DataFrame(feats, index=df.index)

    def _one(self, formula):
        parts = self._parse(formula)
        props = np.array([PROPERTIES[e] for e, _ in parts])
        w = np.array([f for _, f in parts])
        w = w / w.sum()
        mean = w @ props
        out = {}
        for k, name in enumerate(self.names):
            out[f"{name}_mean"] = mean[k]
            out[f"{name}_dev"] = w @ np.abs(props[:, k] - mean[k])
            out[f"{name}_range"] = np.ptp(props[:, k])
        return out

    @staticmethod
    def _parse(formula):
        parts, i = [], 0
        while i < len(formula):
            el = formula[i:i + 2]
            num = formula[i + 2:i + 6]
            parts.append((el, float(num)))
            i += 6
        return parts


def candidates(seed):
    return {
        "ridge": make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(1.0)),
        "knn": make_pipeline(StandardScaler(), KNeighborsRegressor(6, weights="distance")),
        "gbr": GradientBoostingRegressor(
            n_estimators=120, max_depth=3, subsample=0.8, random_state=seed
        ),
    }


class Benchmark:
    def __init__(self, df, cfg):
        self.df, self.cfg = df, cfg
        self.featurizer = Featurizer()

    def split(self):
        shuffled = self.df.sample(frac=1)  # cause
        cut = int(self.cfg.test_spec * len(shuffled))
        return shuffled.iloc[:cut], shuffled.iloc[cut:]

    def run(self):
        testdf, traindf = self.split()
        log.info("train %d rows, test %d rows", len(traindf), len(testdf))
        Xtr, Xte = self.featurizer.transform(traindf), self.featurizer.transform(testdf)
        ytr, yte = traindf[self.cfg.target], testdf[self.cfg.target]
        results, preds = {}, testdf[["id", "formula", self.cfg.target]].copy()
        for name, model in candidates(self.cfg.seed).items():
            t0 = time.time()
            model.fit(Xtr, ytr)
            p = model.predict(Xte)
            preds[name] = p
            results[name] = {
                "mae": round(float(mean_absolute_error(yte, p)), 6),
                "r2": round(float(r2_score(yte, p)), 6),
            }
            log.info("%s fitted in %.2fs", name, time.time() - t0)
        return results, preds


def leaderboard(results):
    table = pd.DataFrame(results).T.sort_values("mae", kind="stable")
    table.insert(0, "rank", range(1, len(table) + 1))
    return table


def worst(preds, model, target, n=5):
    err = (preds[model] - preds[target]).abs()
    rows = preds.assign(err=err).sort_values(["err", "id"], ascending=[False, True])
    return rows[["id", "formula", target, model, "err"]].head(n)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--test-spec", type=float, default=Config.test_spec)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Config(test_spec=args.test_spec)
    df = make_dataset(cfg)
    df.to_csv("dataset.csv", index=False, float_format="%.6f")
    print(f"{len(df)} materials, target mean {df[cfg.target].mean():.4f}")

    results, preds = Benchmark(df, cfg).run()
    table = leaderboard(results)
    print(table.to_string())
    best = table.index[0]
    print(f"largest errors of {best}:")
    print(worst(preds, best, cfg.target).round(4).to_string(index=False))
    preds.sort_values("id").to_csv("predictions.csv", index=False, float_format="%.6f")
    with open(cfg.out, "w") as fh:
        json.dump({"best": best, "results": results}, fh, indent=1)


if __name__ == "__main__":
    main()
