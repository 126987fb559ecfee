"""Estimator families with a random-direction local search over their configurations."""
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SPACES = {
    "hgb": {"iters": (8, 80, "log"), "leaves": (4, 40, "log"), "lr": (0.02, 0.5, "log")},
    "xtree": {"trees": (6, 40, "log"), "depth": (2, 14, "lin"), "feat": (0.2, 1.0, "lin")},
    "knn": {"k": (2, 60, "log"), "p": (1.0, 3.0, "lin")},
}


def decode(family, unit):
    out = {}
    for (name, (lo, hi, kind)), u in zip(SPACES[family].items(), unit):
        out[name] = lo * (hi / lo) ** u if kind == "log" else lo + (hi - lo) * u
    return out


def make_model(family, cfg, seed):
    if family == "hgb":
        return HistGradientBoostingRegressor(
            max_iter=int(cfg["iters"]), max_leaf_nodes=int(cfg["leaves"]), learning_rate=cfg["lr"], random_state=seed)
    if family == "xtree":
        return ExtraTreesRegressor(
            n_estimators=int(cfg["trees"]), max_depth=int(cfg["depth"]), max_features=cfg["feat"], random_state=seed)
    return make_pipeline(StandardScaler(), KNeighborsRegressor(int(cfg["k"]), p=cfg["p"]))


class LocalSearch:
    """Keeps an incumbent in the unit cube and proposes a step in a random direction."""

    def __init__(self, family, rng):
        self.family, self.rng = family, rng
        self.best_u = np.full(len(SPACES[family]), 0.3)
        self.best = np.inf
        self.step = 0.25
        self.tries = 0

    def propose(self):
        if self.tries == 0:
            return self.best_u
        d = self.rng.normal(size=self.best_u.shape)
        return np.clip(self.best_u + self.step * d / np.linalg.norm(d), 0, 1)

    def tell(self, u, loss):
        self.tries += 1
        if loss < self.best:
            gain, self.best, self.best_u = self.best - loss, loss, u
            return gain
        self.step = max(0.05, 0.93 * self.step)
        return 0.0
