"""Gridding of interferometer visibilities and a dirty image.

Modelled on https://github.com/numba/numba/issues/7984
Accumulates simulated visibilities on a uv grid, images them and finds the brightest sources.
"""
import argparse
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import numba
import numpy as np
from numba import njit, prange

log = logging.getLogger("gridder")


@dataclass
class ImagingConfig:
    seed: int = 5
    grid: int = 64
    visibilities: int = 1_000_000
    channels: int = 200
    sources: int = 6
    noise: float = 0.3
    clean_iterations: int = 30
    gain: float = 0.2


@njit(parallel=True)
def grid_visibilities(real, imag, iu, iv, scales, n):
    grid_re = np.zeros((n, n), dtype=np.float64)
    grid_im = np.zeros((n, n), dtype=np.float64)
    weight = np.zeros((n, n), dtype=np.float64)
    for k in prange(len(real)):
        i = iv[k]
        j = iu[k]
        for c in range(len(scales)):
            grid_re[i, j] += real[k] * scales[c]  # cause
            grid_im[i, j] += imag[k] * scales[c]  # cause
            weight[i, j] += 1.0  # cause
    return grid_re, grid_im, weight


@njit
def predict(u, v, l, m, flux):
    real = np.zeros(len(u))
    imag = np.zeros(len(u))
    for k in range(len(u)):
        for s in range(len(l)):
            phase = -2.0 * np.pi * (u[k] * l[s] + v[k] * m[s])
            real[k] += flux[s] * np.cos(phase)
            imag[k] += flux[s] * np.sin(phase)
    return real, imag


class Sky:
    def __init__(self, cfg, rng):
        self.l = rng.integers(-20, 20, cfg.sources) / cfg.grid
        self.m = rng.integers(-20, 20, cfg.sources) / cfg.grid
        self.flux = rng.uniform(1.0, 6.0, cfg.sources)


class Observation:
    """Simulated uv coverage with Gaussian density and thermal noise."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.rng = np.random.default_rng(cfg.seed)
        self.sky = Sky(cfg, self.rng)

    def simulate(self):
        cfg = self.cfg
        n = cfg.visibilities
        half = cfg.grid // 2
        uv = np.clip(np.rint(self.rng.normal(0, half / 4, size=(2, n))), -half, half - 1)
        u, v = uv.astype(np.int64)
        real, imag = predict(u.astype(float), v.astype(float), self.sky.l, self.sky.m,
                             self.sky.flux)
        real += self.rng.normal(0, cfg.noise, n)
        imag += self.rng.normal(0, cfg.noise, n)
        return u + half, v + half, real, imag


def dirty_image(grid_re, grid_im, weight):
    vis = (grid_re + 1j * grid_im) / np.maximum(weight, 1.0)
    image = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(vis))).real
    beam = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift((weight > 0).astype(float)))).real
    return image * vis.size / (weight > 0).sum(), beam / beam.max()


def hogbom_clean(image, beam, cfg):
    residual = image.copy()
    model = np.zeros_like(image)
    centre = np.array(np.unravel_index(np.argmax(beam), beam.shape))
    for _ in range(cfg.clean_iterations):
        peak = np.array(np.unravel_index(np.argmax(residual), residual.shape))
        value = cfg.gain * residual[tuple(peak)]
        model[tuple(peak)] += value
        shift = peak - centre
        residual -= value * np.roll(beam, shift, axis=(0, 1))
    return model, residual


def catalogue(model, top):
    order = np.argsort(model, axis=None)[::-1][:top]
    rows = []
    for flat in order:
        y, x = np.unravel_index(flat, model.shape)
        rows.append({"x": int(x), "y": int(y), "flux": float(model[y, x])})
    return rows


def save(path, image, model, residual, weight):
    with h5py.File(path, "w", track_order=False) as fh:
        for name, data in [("dirty", image), ("model", model), ("residual", residual),
                           ("weight", weight)]:
            fh.create_dataset(name, data=data)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--visibilities", type=int, default=ImagingConfig.visibilities)
    ap.add_argument("--threads", type=int, default=2)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d ms %(message)s")
    numba.set_num_threads(min(args.threads, numba.config.NUMBA_NUM_THREADS))
    cfg = ImagingConfig(visibilities=args.visibilities)

    u, v, real, imag = Observation(cfg).simulate()
    log.info("simulated %d visibilities", len(u))
    t0 = time.perf_counter()
    scales = (1.0 + np.arange(cfg.channels) / cfg.channels) ** -0.7
    grid_re, grid_im, weight = grid_visibilities(real, imag, u, v, scales, cfg.grid)
    log.info("gridded in %.3f s", time.perf_counter() - t0)

    image, beam = dirty_image(grid_re, grid_im, weight)
    model, residual = hogbom_clean(image, beam, cfg)
    out = Path("imaging")
    out.mkdir(exist_ok=True)
    save(out / "images.h5", image, model, residual, weight)
    summary = {
        "sum_of_weights": float(weight.sum()),
        "rms": float(residual.std()),
        "sources": catalogue(model, cfg.sources),
    }
    (out / "catalogue.json").write_text(json.dumps(summary, indent=1))
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
