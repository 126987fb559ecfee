"""Local Fisher discriminant analysis on a synthetic wine table, then k-NN.

Learns a linear projection from the labelled rows, writes the projected table
and the components, and compares nearest-neighbour accuracy before and after.

Modelled on: https://github.com/scikit-learn-contrib/metric-learn/pull/326
"""
import json
import pathlib
import time

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse.linalg import eigsh
from sklearn.datasets import make_classification
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

RANDOM_STATE = 0


def load_table():
    x, y = make_classification(
        n_samples=600,
        n_features=30,
        n_informative=9,
        n_redundant=6,
        n_classes=4,
        n_clusters_per_class=1,
        class_sep=1.1,
        random_state=RANDOM_STATE,
    )
    columns = [f"f{i:02d}" for i in range(x.shape[1])]
    return pd.DataFrame(x, columns=columns).assign(label=y)


class LFDA:
    """Local Fisher discriminant analysis.

    n_components  dimension of the projection
    k             neighbour whose distance scales the affinity
    """

    def __init__(self, n_components=5, k=7, reg=1e-6):
        self.n_components = n_components
        self.k = k
        self.reg = reg

    def _scatter(self, x, y):
        n, d = x.shape
        within = np.zeros((d, d))
        between = np.zeros((d, d))
        for label in np.unique(y):
            xc = x[y == label]
            nc = len(xc)
            squared = pairwise_distances(xc, metric="sqeuclidean")
            sigma = np.sqrt(np.sort(squared, axis=0)[min(self.k, nc - 1)])
            local = np.outer(sigma, sigma)
            affinity = np.exp(-squared / np.where(local > 0, local, 1.0))
            affinity[local == 0] = 0
            degree = xc.T * affinity.sum(axis=0)
            g = degree @ xc - xc.T @ affinity @ xc
            outer = np.outer(xc.sum(axis=0), xc.sum(axis=0))
            between += g / n + (1 - nc / n) * (xc.T @ xc) + outer / n
            within += g / nc
        total = np.outer(x.sum(axis=0), x.sum(axis=0))
        between -= total / n + within
        return (within + within.T) / 2, (between + between.T) / 2

    def fit(self, x, y):
        within, between = self._scatter(x, y)
        factor = cholesky(within + self.reg * np.eye(len(within)), lower=True)
        half = solve_triangular(factor, between, lower=True)
        whitened = solve_triangular(factor, half.T, lower=True)
        whitened = (whitened + whitened.T) / 2
        values, vectors = eigsh(whitened, k=self.n_components, which="LA")  # cause
        order = np.argsort(values)[::-1]
        self.values_ = values[order]
        vectors = solve_triangular(factor.T, vectors[:, order], lower=False)
        self.components_ = (vectors * np.sqrt(np.abs(self.values_))).T
        return self

    def transform(self, x):
        return x @ self.components_.T


def knn_accuracy(x, y):
    folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=RANDOM_STATE)
    scores = cross_val_score(KNeighborsClassifier(5), x, y, cv=folds)
    return round(float(scores.mean()), 4)


def quadrants(projected):
    """How many rows lie in which quadrant of the first two components."""
    codes = (projected[:, 0] > 0).astype(int) * 2 + (projected[:, 1] > 0)
    names = ["--", "-+", "+-", "++"]
    return {name: int((codes == i).sum()) for i, name in enumerate(names)}


def main():
    began = time.time()
    table = load_table()
    x = StandardScaler().fit_transform(table.drop(columns="label"))
    y = table["label"].to_numpy()
    lfda = LFDA(n_components=5).fit(x, y)
    projected = lfda.transform(x)

    names = [f"lfda_{i + 1}" for i in range(projected.shape[1])]
    out = pd.DataFrame(projected, columns=names).assign(label=y)
    out.to_csv("projected.csv", index=False, float_format="%.6f")
    components = pd.DataFrame(lfda.components_, index=names, columns=table.columns[:-1])
    components.to_csv("components.csv", float_format="%.6f")
    report = {
        "eigenvalues": [round(float(v), 6) for v in lfda.values_],
        "knn_raw": knn_accuracy(x, y),
        "knn_lfda": knn_accuracy(projected, y),
        "quadrants": quadrants(projected),
    }
    pathlib.Path("report.json").write_text(json.dumps(report, indent=1))
    for key, value in report.items():
        print(f"{key}: {value}")
    print(f"took {time.time() - began:.2f}s")


if __name__ == "__main__":
    main()
