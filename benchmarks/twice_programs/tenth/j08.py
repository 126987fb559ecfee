"""Modelled on https://github.com/scatseisnet/scatseisnet/issues/25

Clustering of seismic scattering coefficients: the numbers of the clusters and
their main features do not agree with those of the last execution.
"""
import json
import logging
import os
import time
from dataclasses import asdict, dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import FastICA
from sklearn.metrics import silhouette_score

logger = logging.getLogger("scatseis")


@dataclass
class Config:
    seed: int = 4
    sampling_rate: float = 50.0
    segment_seconds: float = 20.48
    n_segments: int = 420
    octaves: tuple = (6, 5)
    resolution: tuple = (3, 1)
    n_components: int = 8
    n_clusters: int = 6
    out: str = "seismic_clusters"


def synthetic_stream(cfg):
    """Noise, harmonic tremor, impulsive events and drifting tones in windows of equal length."""
    rng = np.random.default_rng(cfg.seed)
    n = int(cfg.segment_seconds * cfg.sampling_rate)
    t = np.arange(n) / cfg.sampling_rate
    segments, kinds = [], []
    for i in range(cfg.n_segments):
        kind = int(rng.choice(4, p=[0.45, 0.2, 0.2, 0.15]))
        x = np.cumsum(rng.normal(0, 0.12, n))
        x -= np.linspace(x[0], x[-1], n)
        x += rng.normal(0, 0.4, n)
        if kind == 1:
            f0 = rng.uniform(1.5, 3.0)
            for h in range(1, 4):
                x += rng.uniform(0.5, 1.5) / h * np.sin(2 * np.pi * h * f0 * t + rng.uniform(0, 6))
        elif kind == 2:
            for _ in range(rng.integers(1, 4)):
                at = rng.uniform(1, cfg.segment_seconds - 3)
                env = np.where(t > at, np.exp(-(t - at) / rng.uniform(0.3, 1.2)), 0)
                x += rng.uniform(2, 6) * env * np.sin(2 * np.pi * rng.uniform(5, 14) * t)
        elif kind == 3:
            sweep = rng.uniform(0.5, 2) + rng.uniform(0.1, 0.3) * t
            x += 1.4 * np.sin(2 * np.pi * np.cumsum(sweep) / cfg.sampling_rate)
        segments.append(x)
        kinds.append(kind)
    return np.array(segments), np.array(kinds)


def wavelet_bank(n, octaves, resolution, quality, rate):
    """Gaussian filters in the frequency domain, geometrically spaced below Nyquist."""
    freqs = np.fft.rfftfreq(n, 1 / rate)
    centers = rate / 2 * 2.0 ** (-(np.arange(octaves * resolution) + 1) / resolution)
    widths = centers / quality
    bank = np.exp(-((freqs[None] - centers[:, None]) ** 2) / (2 * widths[:, None] ** 2))
    return bank, centers


class ScatteringNetwork:
    def __init__(self, n, cfg):
        self.n = n
        self.banks = [
            wavelet_bank(n, o, r, q, cfg.sampling_rate)[0]
            for o, r, q in zip(cfg.octaves, cfg.resolution, (2.5, 1.2))
        ]

    def _modulus(self, x, bank):
        spec = np.fft.rfft(x, axis=-1)
        return np.abs(np.fft.irfft(spec[..., None, :] * bank, self.n, axis=-1))

    def transform(self, segment):
        first = self._modulus(segment, self.banks[0])
        second = self._modulus(first, self.banks[1])
        s1 = first.mean(axis=-1)
        s2 = second.mean(axis=-1) / (s1[:, None] + 1e-9)
        return s1, s2

    def features(self, segments):
        rows = []
        for x in segments:
            s1, s2 = self.transform(x)
            rows.append(np.log(np.concatenate([s1, s2.ravel()]) + 1e-3))
        return np.array(rows)


def reduce_features(features, cfg):
    model = FastICA(n_components=cfg.n_components, whiten="unit-variance", max_iter=400,  # cause
                    tol=1e-3)
    latents = model.fit_transform(features)
    logger.info("ica stopped after %d iterations", model.n_iter_)
    return latents, model


def cluster(latents, cfg):
    km = KMeans(n_clusters=cfg.n_clusters, n_init=5, random_state=cfg.seed)
    labels = km.fit_predict(latents)
    return labels, km.cluster_centers_


def contingency(labels, kinds, n_clusters):
    table = np.zeros((n_clusters, kinds.max() + 1), int)
    np.add.at(table, (labels, kinds), 1)
    return table


def purity(table):
    return float(table.max(axis=1).sum() / table.sum())


def main():
    cfg = Config()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    os.makedirs(cfg.out, exist_ok=True)
    logger.info("config %s", json.dumps(asdict(cfg)))

    t0 = time.time()
    segments, kinds = synthetic_stream(cfg)
    net = ScatteringNetwork(segments.shape[1], cfg)
    features = net.features(segments)
    logger.info("%d segments, %d scattering coefficients", *features.shape)
    features = (features - features.mean(0)) / (features.std(0) + 1e-12)

    latents, model = reduce_features(features, cfg)
    labels, centers = cluster(latents, cfg)
    table = contingency(labels, kinds, cfg.n_clusters)
    score = float(silhouette_score(latents, labels))

    for c in range(cfg.n_clusters):
        main_feature = int(np.abs(centers[c]).argmax())
        print(f"cluster {c}: {table[c].sum():4d} segments, mostly constrained by feature "
              f"{main_feature} ({centers[c, main_feature]:+.3f}), classes {table[c].tolist()}")
    print(f"silhouette {score:.5f}, purity {purity(table):.4f}")

    np.savez(os.path.join(cfg.out, "latents.npz"), latents=latents, labels=labels)
    np.savetxt(os.path.join(cfg.out, "centers.csv"), centers, fmt="%.6f", delimiter=",")
    with open(os.path.join(cfg.out, "scores.json"), "w") as fh:
        json.dump(
            {
                "silhouette": round(score, 6),
                "purity": round(purity(table), 6),
                "cluster_sizes": table.sum(axis=1).tolist(),
                "mixing_norm": round(float(np.linalg.norm(model.mixing_)), 6),
            },
            fh,
            indent=2,
        )
    logger.info("finished in %.2f s", time.time() - t0)


if __name__ == "__main__":
    main()
