"""https://github.com/dask/dask/issues/6555 - objects without __dask_tokenize__ got a random token from tokenize(); a
token of the same object is not the same in the next process, so whatever is derived from it (here a seed) is not."""
import json
import threading
import time
from functools import wraps
from pathlib import Path

import numpy as np
from dask.base import tokenize
from sklearn.decomposition import NMF
from sklearn.metrics import adjusted_rand_score


class Plan:
    """Settings of an experiment, with a lock for the threads that fill in results."""

    def __init__(self, **settings):
        self.settings = settings
        self.lock = threading.Lock()
        self.results = {}

    def __getitem__(self, key):
        return self.settings[key]

    def store(self, key, value):
        with self.lock:
            self.results[key] = value


def seeded(func):
    """Gives a step its own generator, from the step's name and arguments."""

    @wraps(func)
    def wrapper(plan, *args):
        token = tokenize(func.__name__, plan, args)  # cause
        rng = np.random.default_rng(int(token[:12], 16))
        t0 = time.perf_counter()
        out = func(plan, *args, rng=rng)
        print(f"{func.__name__}{args if len(str(args)) < 20 else ''} took {time.perf_counter() - t0:.3f}s")
        return out

    return wrapper


def spectra(n=600, peaks=4, bins=90):
    g = np.random.default_rng(2)
    grid = np.arange(bins)
    pure = np.stack([np.exp(-((grid - c) ** 2) / (2 * w ** 2)) for c, w in zip(g.uniform(10, 80, peaks), g.uniform(3, 9, peaks))])
    mix = g.dirichlet([0.3] * peaks, n)
    counts = g.poisson(60 * mix @ pure + 0.5)
    return counts.astype(float), mix.argmax(1)


@seeded
def bootstrap_rank(plan, k, rng=None):
    x = plan["x"]
    errors = []
    for _ in range(plan["repeats"]):
        rows = rng.choice(len(x), len(x) // 2, replace=False)
        model = NMF(k, init="random", random_state=int(rng.integers(2 ** 31)), max_iter=80, tol=1e-3)
        w = model.fit_transform(x[rows])
        errors.append(float(np.linalg.norm(x[rows] - w @ model.components_) / len(rows)))
    return float(np.mean(errors) + 0.004 * k)


@seeded
def final_fit(plan, k, rng=None):
    model = NMF(k, init="random", random_state=int(rng.integers(2 ** 31)), max_iter=300)
    w = model.fit_transform(plan["x"])
    return w, model.reconstruction_err_


def main():
    np.random.seed(1)
    x, truth = spectra()
    plan = Plan(x=x, repeats=4)
    for k in range(2, 8):
        plan.store(k, bootstrap_rank(plan, k))
    best = min(plan.results, key=plan.results.get)
    w, err = final_fit(plan, best)
    score = adjusted_rand_score(truth, w.argmax(1))
    print(f"{time.asctime()}: rank {best}, error {err:.6f}, agreement {score:.4f}")
    Path("nmf.json").write_text(json.dumps({"curve": plan.results, "rank": best, "error": float(err), "ari": score}, indent=1))


if __name__ == "__main__":
    main()
