"""unseen: estimate how many works of a literature were lost, with bootstrap intervals.

Abundance data for some "assemblages" of manuscripts is simulated from a seed.  The
Chao1 and an ACE-like estimator are computed, and their uncertainty by resampling
in worker processes.  ``bootstrap_<name>.csv`` holds the replicates of each
assemblage, ``summary.json`` the intervals.

Modelled on: https://github.com/mikekestemont/copia/issues/14
"""
import csv
import json
import logging
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

log = logging.getLogger("unseen")

REPLICATES = 120
WORKERS = 4


@dataclass(frozen=True)
class Assemblage:
    name: str
    works: int
    documents: int
    seed: int


ASSEMBLAGES = [
    Assemblage("dutch", 160, 420, 11),
    Assemblage("french", 420, 1900, 12),
    Assemblage("irish", 330, 760, 13),
    Assemblage("icelandic", 210, 1500, 14),
]


def simulate(assemblage):
    """Number of surviving documents for each work that has any."""
    rng = np.random.default_rng(assemblage.seed)
    popularity = rng.lognormal(0.0, 1.4, assemblage.works)
    counts = rng.multinomial(assemblage.documents, popularity / popularity.sum())
    return np.sort(counts[counts > 0])[::-1]


def chao1(counts):
    n = counts.sum()
    f1 = int((counts == 1).sum())
    f2 = int((counts == 2).sum())
    observed = len(counts)
    scale = (n - 1) / n
    if f2 > 0:
        return observed + scale * f1 * f1 / (2 * f2)
    return observed + scale * f1 * (f1 - 1) / 2


def ace(counts, rare=10):
    abundant = (counts > rare).sum()
    few = counts[counts <= rare]
    n_rare = few.sum()
    f1 = (few == 1).sum()
    coverage = 1 - f1 / n_rare
    if coverage <= 0:
        return chao1(counts)
    i = np.arange(1, rare + 1)
    f = np.array([(few == k).sum() for k in i])
    gamma = len(few) / coverage * (i * (i - 1) * f).sum() / (n_rare * (n_rare - 1)) - 1
    return abundant + len(few) / coverage + f1 / coverage * max(gamma, 0)


def replicate(counts, seed):
    """One bootstrap replicate: resample documents and estimate again."""
    rng = np.random.default_rng(seed)
    n = int(counts.sum())
    labels = np.repeat(np.arange(len(counts)), counts)
    values = []
    for _ in range(30 + seed % 17):
        drawn = np.bincount(rng.choice(labels, n), minlength=len(counts))
        drawn = drawn[drawn > 0]
        values.append((chao1(drawn), ace(drawn)))
    first, second = np.mean(values, axis=0)
    return round(float(first), 6), round(float(second), 6)


class Bootstrap:
    def __init__(self, executor, replicates, seed):
        self.executor = executor
        self.replicates = replicates
        self.seeds = np.random.SeedSequence(seed).generate_state(replicates)

    def run(self, counts):
        futures = [self.executor.submit(replicate, counts, int(s)) for s in self.seeds]
        values = []
        for future in as_completed(futures):  # cause
            values.append(future.result())
        return np.array(values)


def interval(values, level=0.95):
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return [round(float(low), 3), round(float(high), 3)]


def drift(values):
    """Difference between the first and second half of the replicates."""
    half = len(values) // 2
    return round(float(np.median(values[:half]) - np.median(values[half:])), 4)


def write_replicates(name, values):
    with open(f"bootstrap_{name}.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["replicate", "chao1", "ace"])
        for i, (first, second) in enumerate(values):
            writer.writerow([i, first, second])


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    summary = {}
    with ProcessPoolExecutor(WORKERS) as executor:
        for assemblage in ASSEMBLAGES:
            started = time.perf_counter()
            counts = simulate(assemblage)
            values = Bootstrap(executor, REPLICATES, assemblage.seed).run(counts)
            write_replicates(assemblage.name, values)
            summary[assemblage.name] = {
                "observed": int(len(counts)),
                "chao1": round(float(chao1(counts)), 3),
                "ace": round(float(ace(counts)), 3),
                "chao1_ci": interval(values[:, 0]),
                "ace_ci": interval(values[:, 1]),
                "drift": drift(values[:, 0]),
            }
            log.info("%s done in %.2fs", assemblage.name, time.perf_counter() - started)
    with open("summary.json", "w") as fh:
        json.dump(summary, fh, indent=2)
    for name, row in summary.items():
        print(f"{name:10s} observed={row['observed']} chao1={row['chao1']} "
              f"{row['chao1_ci']} ace={row['ace']} drift={row['drift']}")


if __name__ == "__main__":
    main()
