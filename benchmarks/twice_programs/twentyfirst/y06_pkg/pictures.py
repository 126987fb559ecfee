"""Rendered leaves: a green ellipse with veins and, for some, spots."""
import numpy as np


def render(rng, label, size):
    yy, xx = np.mgrid[:size, :size] / size - 0.5
    a = rng.uniform(0, np.pi)
    u, v = xx * np.cos(a) + yy * np.sin(a), -xx * np.sin(a) + yy * np.cos(a)
    leaf = (u / rng.uniform(.35, .45)) ** 2 + (v / rng.uniform(.18, .28)) ** 2 < 1
    img = np.full((size, size, 3), (170, 160, 140), float) + rng.normal(0, 8, (size, size, 3))
    img[leaf] = np.array([60, 130, 50]) + rng.normal(0, 10, (int(leaf.sum()), 3))
    img[leaf & (np.abs(v) < .012)] = (120, 170, 90)
    if label:
        for _ in range(rng.integers(2, 6)):
            cu, cv, r = rng.uniform(-.3, .3), rng.uniform(-.15, .15), rng.uniform(.02, .05)
            img[leaf & ((u - cu) ** 2 + (v - cv) ** 2 < r * r)] = (125, 95, 50) if label == 1 else (190, 185, 90)
    return np.clip(img, 0, 255).astype(np.uint8)


def render_set(n, size, seed):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    return np.stack([render(rng, int(k), size) for k in labels]), labels
