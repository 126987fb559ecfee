"""Stimulation of a whole-brain network model.

Modelled on https://github.com/neich/neuronumba/pull/34
Integrates coupled neural masses under a pulsed stimulus and measures functional connectivity.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numba import njit
from scipy.signal import welch

log = logging.getLogger("brain")


@dataclass
class BrainConfig:
    seed: int = 6
    regions: int = 90
    coupling: float = 0.55
    dt: float = 0.1
    steps: int = 120_000
    noise: float = 0.02
    sample_every: int = 20
    targets: tuple = (17,)


@dataclass
class Stimulus:
    """Pulse train played by a 24-bit converter with a few channels per region."""

    period: int = 400
    width: int = 60
    channels: int = 3
    level: int = 5_000_000
    full_scale: float = 2.0
    codes: np.ndarray = field(default=None, repr=False)

    def configure(self, n_regions, targets):
        self.codes = np.empty((n_regions, self.channels), dtype=np.int64)  # cause
        for region in targets:
            for channel in range(self.channels):
                self.codes[region, channel] = self.level >> channel
        return self

    def amplitude(self):
        words = self.codes & 0xFFFFFF
        return words.mean(axis=1) / 0xFFFFFF * self.full_scale


class Connectome:
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        position = rng.uniform(-1, 1, (n, 3))
        distance = np.linalg.norm(position[:, None] - position[None], axis=-1)
        weights = np.exp(-3 * distance) * rng.gamma(2.0, 0.5, (n, n))
        np.fill_diagonal(weights, 0)
        self.weights = weights / weights.sum(1).max()
        self.names = [f"R{k:02d}" for k in range(n)]


@njit
def sigmoid(x, gain, threshold):
    return 1.0 / (1.0 + np.exp(-gain * (x - threshold)))


@njit
def integrate(weights, amplitude, steps, dt, coupling, noise, period, width, every, seed):
    np.random.seed(seed)
    n = len(weights)
    e = np.full(n, 0.1)
    i = np.full(n, 0.1)
    de = np.zeros(n)
    di = np.zeros(n)
    out = np.zeros((steps // every, n))
    for step in range(steps):
        on = 1.0 if step % period < width else 0.0
        if step % 4 == 0:
            drive = weights @ e
        for k in range(n):
            x = 12.0 * e[k] - 10.0 * i[k] + 10.0 * coupling * drive[k] + 1.1 + on * amplitude[k]
            y = 10.0 * e[k] - 2.0 * i[k]
            de[k] = (-e[k] + (1 - e[k]) * sigmoid(x, 1.2, 2.8)) / 10.0
            di[k] = (-i[k] + (1 - i[k]) * sigmoid(y, 1.0, 4.0)) / 18.0
        for k in range(n):
            kick = noise * np.sqrt(dt) * np.random.normal()
            e[k] = min(max(e[k] + dt * de[k] + kick, 0.0), 1.0)
            i[k] = min(max(i[k] + dt * di[k], 0.0), 1.0)
        if step % every == 0:
            out[step // every] = e
    return out


class Simulator:
    def __init__(self, cfg, connectome, stimulus):
        self.cfg = cfg
        self.connectome = connectome
        self.stimulus = stimulus

    def run(self):
        cfg, stim = self.cfg, self.stimulus
        return integrate(self.connectome.weights, stim.amplitude(), cfg.steps, cfg.dt,
                         cfg.coupling, cfg.noise, stim.period, stim.width, cfg.sample_every,
                         cfg.seed)


def functional_connectivity(signal):
    trimmed = signal[len(signal) // 5:]
    return np.corrcoef(trimmed.T)


def dominant_frequency(signal, cfg):
    rate = 1000.0 / (cfg.dt * cfg.sample_every)
    freq, power = welch(signal - signal.mean(0), fs=rate, nperseg=512, axis=0)
    return freq[power.argmax(0)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=BrainConfig.steps)
    ap.add_argument("--target", type=int, nargs="+", default=list(BrainConfig.targets))
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = BrainConfig(steps=args.steps, targets=tuple(args.target))
    connectome = Connectome(cfg.regions, cfg.seed)
    stimulus = Stimulus().configure(cfg.regions, cfg.targets)
    t0 = time.perf_counter()
    signal = Simulator(cfg, connectome, stimulus).run()
    log.info("simulated %d steps in %.2f s", cfg.steps, time.perf_counter() - t0)
    fc = functional_connectivity(signal)
    table = pd.DataFrame({"region": connectome.names, "mean": signal.mean(0),
                          "peak": signal.max(0), "frequency": dominant_frequency(signal, cfg)})
    out = Path("brain")
    out.mkdir(exist_ok=True)
    table.to_csv(out / "regions.csv", index=False, float_format="%.7f")
    np.save(out / "fc.npy", fc)
    upper = fc[np.triu_indices(cfg.regions, 1)]
    summary = {"mean_rate": round(float(signal.mean()), 8),
               "fc_mean": round(float(np.nanmean(upper)), 8),
               "fc_std": round(float(np.nanstd(upper)), 8)}
    (out / "summary.json").write_text(json.dumps(summary))
    print(json.dumps(summary))
    print(table.iloc[list(cfg.targets)].round(6).to_string(index=False))


if __name__ == "__main__":
    main()
