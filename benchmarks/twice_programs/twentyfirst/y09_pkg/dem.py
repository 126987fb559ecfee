"""A fractal elevation model, its tiles and catchments."""
import numpy as np


def make_dem(n, seed, beta=2.1):
    rng = np.random.default_rng(seed)
    f = np.hypot(np.fft.fftfreq(n)[:, None], np.fft.fftfreq(n)[None])
    f[0, 0] = 1.0
    spec = (rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))) / f ** beta
    spec[0, 0] = 0
    z = np.real(np.fft.ifft2(spec))
    z = (z - z.min()) / (z.max() - z.min())
    yy, xx = np.mgrid[:n, :n] / n
    ridge = np.exp(-((xx - 0.6) / 0.2) ** 2) * (0.5 + 0.5 * yy)
    return 300 + 900 * z + 700 * ridge + rng.normal(0, 0.4, (n, n))


def tiles(dem, size):
    n = dem.shape[0] // size
    pad = np.pad(dem, 1, mode="edge")
    return [pad[i * size:(i + 1) * size + 2, j * size:(j + 1) * size + 2] for i in range(n) for j in range(n)]


def catchments(n, k, seed):
    rng = np.random.default_rng(seed + 1)
    seeds = rng.uniform(0, n, (k, 2))
    yy, xx = np.mgrid[:n, :n] + 0.5
    d = np.hypot(yy[..., None] - seeds[:, 0], xx[..., None] - seeds[:, 1])
    return d.argmin(axis=-1)
