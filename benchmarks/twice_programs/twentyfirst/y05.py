"""Differentially private release of hospital length-of-stay statistics.

Computes noisy counts, bounded means, quantiles and a histogram per ward with
Laplace and exponential mechanisms, keeps a budget ledger, and writes the
release together with its error against the protected values.

Modelled on: https://github.com/IBM/differential-privacy-library/issues/31
"""
import csv
import json
import logging
import math
import secrets
import time
from abc import ABC, abstractmethod

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("dp-release")

WARDS = ("cardiology", "geriatrics", "maternity", "oncology", "orthopaedics", "paediatrics", "surgery")
SEED = 2023


# --------------------------------------------------------------------------
# budget
# --------------------------------------------------------------------------
class BudgetExceeded(RuntimeError):
    pass


class Ledger:
    def __init__(self, total):
        self.total = total
        self.entries = []

    @property
    def spent(self):
        return math.fsum(e for _, e in self.entries)

    def charge(self, label, epsilon):
        if self.spent + epsilon > self.total + 1e-9:
            raise BudgetExceeded(f"{label}: {self.spent:.3f} + {epsilon:.3f} > {self.total}")
        self.entries.append((label, epsilon))


# --------------------------------------------------------------------------
# mechanisms
# --------------------------------------------------------------------------
class DPMechanism(ABC):
    def __init__(self, epsilon, sensitivity):
        if epsilon <= 0 or sensitivity < 0:
            raise ValueError("epsilon must be positive and sensitivity non-negative")
        self.epsilon = float(epsilon)
        self.sensitivity = float(sensitivity)
        self._rng = secrets.SystemRandom()  # cause

    @abstractmethod
    def randomise(self, value):
        ...


class Laplace(DPMechanism):
    @staticmethod
    def _sample(u1, u2, u3, u4):
        return math.log(1 - u1) * math.cos(math.pi * u2) + math.log(1 - u3) * math.cos(math.pi * u4)

    def randomise(self, value):
        r = self._rng
        scale = self.sensitivity / self.epsilon
        return value - scale * self._sample(r.random(), r.random(), r.random(), r.random())


class Geometric(DPMechanism):
    def randomise(self, value):
        scale = -self.epsilon / self.sensitivity
        u = self._rng.random() - 0.5
        u *= 1 + math.exp(scale)
        sgn = -1 if u < 0 else 1
        return int(round(value + sgn * math.floor(math.log(max(sgn * u, 1e-15)) / scale)))


class Exponential(DPMechanism):
    """Chooses an index with probability ~ exp(eps * utility / (2 * sensitivity))."""

    def randomise(self, utilities):
        best = max(utilities)
        w = [math.exp(self.epsilon * (u - best) / (2 * self.sensitivity)) for u in utilities]
        target = self._rng.random() * math.fsum(w)
        acc = 0.0
        for i, x in enumerate(w):
            acc += x
            if target <= acc:
                return i
        return len(w) - 1


# --------------------------------------------------------------------------
# queries
# --------------------------------------------------------------------------
def dp_count(x, eps, ledger, label):
    ledger.charge(label, eps)
    return max(0, Geometric(eps, 1).randomise(len(x)))


def dp_mean(x, eps, bounds, ledger, label):
    ledger.charge(label, eps)
    lo, hi = bounds
    clipped = np.clip(x, lo, hi)
    noisy = Laplace(eps, (hi - lo) / max(len(x), 1)).randomise(float(clipped.mean()))
    return min(max(noisy, lo), hi)


def dp_quantile(x, q, eps, bounds, ledger, label, grid=6000):
    ledger.charge(label, eps)
    candidates = np.linspace(*bounds, grid)
    below = np.searchsorted(np.sort(x), candidates)
    utilities = -np.abs(below - q * len(x))
    return float(candidates[Exponential(eps, 1).randomise(utilities.tolist())])


def dp_histogram(x, edges, eps, ledger, label):
    ledger.charge(label, eps)
    counts, _ = np.histogram(x, bins=edges)
    mech = Geometric(eps, 1)
    return [max(0, mech.randomise(int(c))) for c in counts]


# --------------------------------------------------------------------------
# data
# --------------------------------------------------------------------------
def load_stays(seed, n=900000):
    rng = np.random.default_rng(seed)
    ward = rng.choice(len(WARDS), n, p=[.16, .12, .13, .12, .17, .1, .2])
    mean = np.array([5.5, 11.0, 3.2, 8.0, 6.1, 2.9, 4.8])[ward]
    stay = rng.gamma(2.2, mean / 2.2)
    return {w: np.minimum(stay[ward == i], 90.0) for i, w in enumerate(WARDS)}


def exact(x, edges):
    return {"count": len(x), "mean": float(x.mean()), "median": float(np.median(x)),
            "p90": float(np.quantile(x, 0.9)), "histogram": np.histogram(x, bins=edges)[0].tolist()}


def release(stays, epsilon, edges, rounds):
    """`rounds` monthly releases, each with its own budget."""
    rows = []
    for month in range(rounds):
        for w in WARDS:
            sub = stays[w][month::rounds]
            ledger = Ledger(epsilon)
            e = epsilon / 5
            rows.append({"month": month + 1, "ward": w,
                         "count": dp_count(sub, e, ledger, "count"),
                         "mean": dp_mean(sub, e, (0, 60), ledger, "mean"),
                         "median": dp_quantile(sub, 0.5, e, (0, 60), ledger, "median"),
                         "p90": dp_quantile(sub, 0.9, e, (0, 60), ledger, "p90"),
                         "histogram": dp_histogram(sub, edges, e, ledger, "histogram"),
                         "spent": round(ledger.spent, 6)})
    return rows


def main():
    t0 = time.perf_counter()
    edges = [0, 1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 91]
    stays = load_stays(SEED)
    rounds = 120
    rows = release(stays, epsilon=0.5, edges=edges, rounds=rounds)
    err = {"mean": [], "median": [], "p90": [], "count": []}
    hist_l1 = 0
    for r in rows:
        ref = exact(stays[r["ward"]][r["month"] - 1::rounds], edges)
        for k in err:
            err[k].append(abs(r[k] - ref[k]))
        hist_l1 += sum(abs(a - b) for a, b in zip(r["histogram"], ref["histogram"]))
    summary = {k: float(np.mean(v)) for k, v in err.items()}
    summary["histogram_l1"] = hist_l1 / len(rows)
    with open("release.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["month", "ward", "count", "mean", "median", "p90"] + [f"h{e}" for e in edges[:-1]])
        for r in rows:
            w.writerow([r["month"], r["ward"], r["count"], f"{r['mean']:.4f}", f"{r['median']:.4f}",
                        f"{r['p90']:.4f}"] + r["histogram"])
    with open("utility.json", "w") as fh:
        json.dump(summary, fh, indent=1)
    for k, v in summary.items():
        print(f"mean abs error {k:<13s} {v:.5f}")
    log.info("released %d rows in %.2f s", len(rows), time.perf_counter() - t0)


if __name__ == "__main__":
    main()
