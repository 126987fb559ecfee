"""Rarefaction of an OTU table with diversity estimates.

Report: https://github.com/hildebra/Rarefaction/issues/26
Samples are rarefied repeatedly to a common depth and the tables are written per repeat.
"""
import argparse
import csv
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

log = logging.getLogger("rtk")


@dataclass
class RtkOptions:
    mode: str = "memory"
    depth: int = 900
    repeats: int = 60
    write: int = 2
    otus: int = 260
    samples: int = 14
    prefix: str = "rtk_"


class OtuTable:
    def __init__(self, names, otus, counts):
        self.names = names
        self.otus = otus
        self.counts = counts

    @classmethod
    def simulate(cls, opts: RtkOptions):
        rng = np.random.default_rng(1926)
        base = rng.dirichlet(np.full(opts.otus, 0.15))
        counts = []
        for s in range(opts.samples):
            mix = 0.7 * base + 0.3 * rng.dirichlet(np.full(opts.otus, 0.1))
            counts.append(rng.multinomial(int(rng.integers(1_200, 9_000)), mix))
        names = [f"s{n:02d}" for n in range(opts.samples)]
        otus = [f"OTU_{n:04d}" for n in range(opts.otus)]
        return cls(names, otus, np.array(counts))

    def write(self, path: Path):
        with open(path, "w", newline="") as fh:
            w = csv.writer(fh, delimiter="\t")
            w.writerow(["OTU"] + self.names)
            for o, row in zip(self.otus, self.counts.T):
                w.writerow([o] + row.tolist())


class DiversityEstimator:
    """Diversity indices for a vector of counts."""

    def richness(self, c):
        return int((c > 0).sum())

    def shannon(self, c):
        p = c[c > 0] / c.sum()
        return float(-(p * np.log(p)).sum())

    def simpson(self, c):
        p = c / c.sum()
        return float(1 - (p**2).sum())

    def chao1(self, c):
        f1, f2 = int((c == 1).sum()), int((c == 2).sum())
        return float(self.richness(c) + f1 * (f1 - 1) / (2 * (f2 + 1)))

    def all(self, c):
        return {
            "richness": self.richness(c),
            "shannon": self.shannon(c),
            "simpson": self.simpson(c),
            "chao1": self.chao1(c),
        }


class Rarefier:
    def __init__(self, opts: RtkOptions):
        self.opts = opts
        seed = time.perf_counter_ns() & 0xFFFFFFFF  # cause
        self.rng = np.random.Generator(np.random.MT19937(seed))

    def shuffle_entries(self, counts):
        entries = np.repeat(np.arange(len(counts)), counts)
        self.rng.shuffle(entries)
        return entries

    def rarefy(self, counts):
        entries = self.shuffle_entries(counts)[: self.opts.depth]
        return np.bincount(entries, minlength=len(counts))


def run(table: OtuTable, opts: RtkOptions):
    rarefier = Rarefier(opts)
    est = DiversityEstimator()
    results = {}
    written = [[] for _ in range(opts.write)]
    for name, counts in zip(table.names, table.counts):
        if counts.sum() < opts.depth:
            log.warning("%s is too shallow", name)
            continue
        values = []
        for rep in range(opts.repeats):
            sub = rarefier.rarefy(counts)
            values.append(est.all(sub))
            if rep < opts.write:
                written[rep].append((name, sub))
        results[name] = {k: float(np.median([v[k] for v in values])) for k in values[0]}
        results[name]["shannon_sd"] = float(np.std([v["shannon"] for v in values]))
    return results, written


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    ap = argparse.ArgumentParser(prog="rtk")
    ap.add_argument("mode", nargs="?", default="memory", choices=["memory", "swap"])
    ap.add_argument("-d", "--depth", type=int, default=RtkOptions.depth)
    ap.add_argument("-r", "--repeats", type=int, default=1800)
    ap.add_argument("-o", "--prefix", default=RtkOptions.prefix)
    ns = ap.parse_args()
    opts = RtkOptions(mode=ns.mode, depth=ns.depth, repeats=ns.repeats, prefix=ns.prefix)
    t0 = time.time()
    table = OtuTable.simulate(opts)
    table.write(Path(f"{opts.prefix}input.tsv"))
    results, written = run(table, opts)
    for rep, columns in enumerate(written):
        sub = OtuTable([n for n, _ in columns], table.otus, np.array([c for _, c in columns]))
        sub.write(Path(f"{opts.prefix}rarefied_to_{opts.depth}_n_{rep}.tsv"))
    with open(f"{opts.prefix}median_diversity.tsv", "w", newline="") as fh:
        w = csv.writer(fh, delimiter="\t")
        w.writerow(["sample", "richness", "shannon", "simpson", "chao1", "shannon_sd"])
        for name, r in results.items():
            w.writerow([name] + [f"{r[k]:.6f}" for k in ("richness", "shannon", "simpson", "chao1", "shannon_sd")])
    first = table.names[0]
    print(f"{first}: shannon {results[first]['shannon']:.6f} chao1 {results[first]['chao1']:.3f}")
    log.info("%d samples, %d repeats, %.2fs", len(results), opts.repeats, time.time() - t0)


if __name__ == "__main__":
    main()
