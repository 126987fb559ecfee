"""https://github.com/convexengineering/gpfit/pull/105 - a timer aborts the fitting iterations; under different load it comes after a different number of steps, and the tests got different results although the seed was fixed."""
import contextlib
import json
import os
import random
import signal
import time

import numpy as np

SEED = 33404


class TimeIsUp(Exception):
    pass


@contextlib.contextmanager
def time_limit(seconds):
    def on_alarm(signum, frame):
        raise TimeIsUp

    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)  # cause
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def max_affine(params, x, k):
    d = x.shape[1]
    b, a = params[:k], params[k:].reshape(k, d)
    z = x @ a.T + b
    return z


def softmax_affine(params, x, k, alpha=6.0):
    z = alpha * max_affine(params, x, k)
    m = z.max(axis=1, keepdims=True)
    e = np.exp(z - m)
    total = e.sum(axis=1, keepdims=True)
    return (m + np.log(total))[:, 0] / alpha, e / total


def residual_jacobian(params, x, y, k):
    pred, w = softmax_affine(params, x, k)
    jac = np.concatenate([w, (w[:, :, None] * x[:, None, :]).reshape(len(x), -1)], axis=1)
    return pred - y, jac


class LevenbergMarquardt:
    def __init__(self, x, y, k, start):
        self.x, self.y, self.k = x, y, k
        self.params, self.damping = start, 1.0
        self.rss = None
        self.steps = 0

    def run(self, max_steps):
        r, j = residual_jacobian(self.params, self.x, self.y, self.k)
        self.rss = float(r @ r)
        while self.steps < max_steps:
            h = j.T @ j
            step = np.linalg.solve(h + self.damping * (np.diag(np.diag(h)) + 1e-9 * np.eye(len(h))), -j.T @ r)
            trial = self.params + 0.15 * step
            r2, j2 = residual_jacobian(trial, self.x, self.y, self.k)
            rss2 = float(r2 @ r2)
            if rss2 < self.rss:
                self.params, r, j, self.rss = trial, r2, j2, rss2
                self.damping = max(self.damping * 0.97, 0.05)
            else:
                self.damping *= 1.3
            self.steps += 1


def make_data(n=1200):
    rng = np.random.RandomState(SEED)
    u = rng.uniform(0.2, 3.0, (n, 3))
    w = u[:, 0] ** 1.3 * u[:, 1] + 0.6 * u[:, 2] ** 2 / u[:, 0] + u[:, 1] ** 0.5
    x, y = np.log(u), np.log(w) + rng.normal(0, 0.02, n)
    return x[:900], y[:900], x[900:], y[900:]


def fit(x, y, k, rng, restarts, seconds):
    best = None
    for attempt in range(restarts):
        solver = LevenbergMarquardt(x, y, k, rng.normal(0, 0.7, k * (x.shape[1] + 1)))
        t0 = time.perf_counter()
        try:
            with time_limit(seconds):  # cause
                solver.run(max_steps=1500)
            state = "converged"
        except TimeIsUp:
            state = "stopped"
        print(f"K={k} start {attempt}: {state} rss {solver.rss:.6f} in {time.perf_counter() - t0:.2f}s")
        if best is None or solver.rss < best.rss:
            best = solver
    return best


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    print("fit", time.ctime(), "pid", os.getpid())
    x, y, xt, yt = make_data()
    rng = np.random.default_rng(SEED)
    table = []
    for k in (3, 4, 6):
        best = fit(x, y, k, rng, restarts=2, seconds=0.35)
        pred, _ = softmax_affine(best.params, xt, k)
        table.append({"K": k, "train_rss": best.rss, "test_rms": float(np.sqrt(np.mean((pred - yt) ** 2)))})
        print("  test rms", table[-1]["test_rms"])
    with open("fits.json", "w") as f:
        json.dump(table, f, indent=1)


if __name__ == "__main__":
    main()
