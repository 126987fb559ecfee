"""Metadata table and simulated sequences."""
from dataclasses import dataclass

import numpy as np
import pandas as pd

REGIONS = ["africa", "asia", "europe", "north-america", "oceania", "south-america"]


@dataclass
class Metadata:
    table: pd.DataFrame
    sequences: np.ndarray

    def rows_for(self, strains):
        lookup = {s: i for i, s in enumerate(self.table["strain"])}
        return np.array([lookup[s] for s in strains], dtype=int)


def simulate_metadata(n, length, seed):
    rng = np.random.default_rng(seed)
    root = rng.integers(0, 4, size=length)
    clades = np.stack([root.copy() for _ in REGIONS])
    for c in clades:
        pos = rng.choice(length, size=25, replace=False)
        c[pos] = rng.integers(0, 4, size=25)
    region = rng.integers(0, len(REGIONS), size=n)
    seqs = clades[region].copy()
    months = rng.integers(1, 37, size=n)
    for i in range(n):
        k = 1 + months[i] // 2
        pos = rng.choice(length, size=k, replace=False)
        seqs[i, pos] = rng.integers(0, 4, size=k)
    table = pd.DataFrame(
        {
            "strain": [f"hCoV/{i:05d}" for i in range(n)],
            "region": [REGIONS[r] for r in region],
            "year": 2019 + (months - 1) // 12,
            "month": 1 + (months - 1) % 12,
        }
    )
    return Metadata(table, seqs.astype(np.int8))
