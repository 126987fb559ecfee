#!/usr/bin/env python
"""Principal components of noisy projection images, in streaming passes.

Modelled on https://github.com/ma-gilles/recovar/issues/97

Generates images of a particle with continuous motion, estimates the mean and
covariance in passes over blocks of images, and writes eigenvalues, embeddings
and a density over the first components.
"""
import argparse
import json
import logging
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

logger = logging.getLogger("covariance")
GB = 1024 ** 3


@dataclass
class PipelineOptions:
    images: int = 400000
    pixels: int = 36
    components: int = 6
    seed: int = 97
    memory_fraction: float = 0.5
    outdir: Path = Path("pipeline")


class ImageStack:
    """Images with three latent coordinates and correlated noise."""

    def __init__(self, options):
        rng = np.random.default_rng(options.seed)
        self.n, self.d = options.images, options.pixels
        grid = np.linspace(0, 2 * np.pi, self.d)
        self.basis = np.stack([np.sin(grid), np.cos(2 * grid), np.sin(3 * grid + 0.5)]).astype(np.float32)
        self.latent = rng.normal(size=(self.n, 3)).astype(np.float32) * np.array([2.0, 1.2, 0.7], np.float32)
        self.latent[:, 1] += 0.4 * self.latent[:, 0] ** 2
        noise = rng.normal(size=(self.n, self.d)).astype(np.float32)
        self.data = self.latent @ self.basis + 0.8 * noise + 25.0

    def blocks(self, rows):
        for start in range(0, self.n, rows):
            yield start, self.data[start:start + rows]


def block_rows(options):
    """Number of images that are processed at once."""
    available = psutil.virtual_memory().available  # cause
    per_image = options.pixels * options.pixels * 4 * 24
    rows = int(available * options.memory_fraction / per_image)
    logger.info("%.1f GB available", available / GB)
    return max(1000, min(rows, options.images))


def mean_estimate(stack, rows):
    total = np.zeros(stack.d, dtype=np.float32)
    for _, block in stack.blocks(rows):
        total += block.sum(axis=0, dtype=np.float32)
    return total / np.float32(stack.n)


def covariance_estimate(stack, mean, rows):
    cov = np.zeros((stack.d, stack.d), dtype=np.float32)
    for start, block in stack.blocks(rows):
        centred = block - mean
        cov += centred.T @ centred
        logger.debug("block at %d", start)
    return cov / np.float32(stack.n - 1)


def principal_components(cov, k):
    values, vectors = np.linalg.eigh(cov.astype(np.float64))
    order = np.argsort(values)[::-1][:k]
    vectors = vectors[:, order]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(k)])
    return values[order], vectors * signs


def embed(stack, mean, vectors, rows):
    out = np.empty((stack.n, vectors.shape[1]), dtype=np.float32)
    for start, block in stack.blocks(rows):
        out[start:start + len(block)] = (block - mean) @ vectors.astype(np.float32)
    return out


def subspace_iteration(stack, mean, vectors, rows, sweeps=20):
    """Refines the components with stochastic updates per block."""
    q = vectors.copy()
    for sweep in range(sweeps):
        for _, block in stack.blocks(rows):
            centred = (block - mean).astype(np.float64)
            q += (0.05 / (1 + sweep)) * (centred.T @ (centred @ q)) / len(block)
            q, r = np.linalg.qr(q)
            q *= np.sign(np.diag(r))
    return q


def density(points, bins=24):
    low, high = np.quantile(points[:, :2], 0.01, axis=0), np.quantile(points[:, :2], 0.99, axis=0)
    hist, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=bins, range=list(zip(low, high)), density=True)
    return hist


def main():
    defaults = PipelineOptions()
    p = argparse.ArgumentParser(description="heterogeneity pipeline")
    p.add_argument("--images", type=int, default=defaults.images)
    p.add_argument("--components", type=int, default=defaults.components)
    p.add_argument("--seed", type=int, default=defaults.seed)
    p.add_argument("--memory-fraction", type=float, default=defaults.memory_fraction)
    p.add_argument("--outdir", type=Path, default=defaults.outdir)
    options = PipelineOptions(**vars(p.parse_args()))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    np.random.seed(options.seed)
    options.outdir.mkdir(parents=True, exist_ok=True)
    logger.info("host %s, %d logical cores", platform.node(), psutil.cpu_count())

    t0 = time.time()
    stack = ImageStack(options)
    rows = block_rows(options)
    mean = mean_estimate(stack, rows)
    values, vectors = principal_components(covariance_estimate(stack, mean, rows), options.components)
    refined = subspace_iteration(stack, mean, vectors, rows)
    points = embed(stack, mean, refined, rows)
    logger.info("pipeline took %.1fs", time.time() - t0)

    np.savetxt(options.outdir / "eigenvalues.txt", values, fmt="%.9g")
    np.savetxt(options.outdir / "components.txt", refined, fmt="%.7f")
    np.savetxt(options.outdir / "density.txt", density(points), fmt="%.7f")
    corr = np.abs(np.corrcoef(points[:, :3].T, stack.latent.T)[:3, 3:])
    summary = {"explained": [round(float(v), 7) for v in values / values.sum()],
               "latent_match": np.round(corr.max(axis=0), 7).tolist(),
               "embedding_std": [round(float(v), 7) for v in points.std(axis=0, dtype=np.float64)]}
    (options.outdir / "summary.json").write_text(json.dumps(summary, indent=1))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
