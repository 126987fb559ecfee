"""Result files of a selection run."""
import csv

import numpy as np

from .fitness import least_squares, predict


def write_evolution(history, path):
    with open(path, "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(history[0]))
        writer.writeheader()
        writer.writerows(history)


def selection_report(best, evolution, X, y, names):
    mask = np.array(best, dtype=bool)
    coef = least_squares(X[:, mask], y)
    resid = y - predict(coef, X[:, mask])
    return {
        "selected": [n for n, m in zip(names, mask) if m],
        "fitness": float(best.fitness.values[0]),
        "coefficients": [float(c) for c in coef],
        "r2": float(1 - resid @ resid / ((y - y.mean()) ** 2).sum()),
        "evaluations": int(sum(h["evaluations"] for h in evolution.history)),
    }
