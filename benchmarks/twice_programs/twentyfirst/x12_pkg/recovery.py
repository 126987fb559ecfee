"""Simulated-quantile parameter recovery by a seeded random local search."""
import numpy as np

from .summary import quantiles

BOUNDS = {"v": (0.0, 2.5), "a": (0.6, 2.0), "z": (0.4, 0.6), "t": (0.15, 0.5)}


def distance(sim, theta, target, n_trials, seed):
    rts, choices = sim.simulate(theta, n_trials, random_state=seed)
    p, qu, ql = quantiles(rts, choices)
    tp, tqu, tql = target
    return float((p - tp) ** 2 * 10 + p * np.mean((qu - tqu) ** 2)
                 + (1 - p) * np.mean((ql - tql) ** 2))


def recover(sim, data, seed, n_trials, rounds=28):
    rng = np.random.default_rng(seed)
    target = quantiles(*data)
    best = {k: (lo + hi) / 2 for k, (lo, hi) in BOUNDS.items()}
    loss = distance(sim, best, target, n_trials, seed)
    width = 0.25
    for r in range(rounds):
        cand = {}
        for key, (lo, hi) in BOUNDS.items():
            cand[key] = float(np.clip(best[key] + rng.normal(0, width) * (hi - lo),
                                      lo, hi))
        d = distance(sim, cand, target, n_trials, seed + r)
        if d < loss:
            best, loss = cand, d
        else:
            width = max(0.03, width * 0.93)
    return best, loss
