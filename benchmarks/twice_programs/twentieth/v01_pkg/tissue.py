"""A simulated tissue section with layered domains."""
from dataclasses import dataclass

import numpy as np


@dataclass
class Section:
    xy: np.ndarray
    expression: np.ndarray
    truth: np.ndarray


def simulate_section(n_cells, n_genes, seed, n_domains=6):
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 100, (n_cells, 2))
    wave = xy[:, 1] + 8 * np.sin(xy[:, 0] / 15.0)
    truth = np.clip((wave / 100 * n_domains).astype(int), 0, n_domains - 1)
    n_types = 8
    types = rng.gamma(1.2, 1.0, (n_types, n_genes))
    mix = rng.dirichlet(np.full(n_types, 0.6), n_domains)
    kind = np.array([rng.choice(n_types, p=mix[d]) for d in truth])
    counts = rng.poisson(types[kind] * rng.gamma(4.0, 0.6, (n_cells, 1)))
    return Section(xy, np.log1p(counts.astype(float)), truth)
