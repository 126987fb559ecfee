"""World with circular obstacles."""
import numpy as np


class Env:
    def __init__(self, width, height, centres, radii, start, goal):
        self.width, self.height = width, height
        self.centres, self.radii = centres, radii
        self.start, self.goal = start, goal

    def clearance(self, points):
        """Distance of each point to the nearest obstacle surface."""
        d = np.linalg.norm(points[:, None] - self.centres[None], axis=2)
        return (d - self.radii).min(axis=1)

    def is_free(self, points, margin):
        points = np.atleast_2d(points)
        inside = ((points >= margin) & (points <= [self.width - margin, self.height - margin]))
        return inside.all(axis=1) & (self.clearance(points) > margin)

    def edge_free(self, a, b, margin, step=0.2):
        n = max(2, int(np.linalg.norm(b - a) / step) + 1)
        line = a + np.linspace(0, 1, n)[:, None] * (b - a)
        return bool(self.is_free(line, margin).all())


def make(cfg, seed):
    rng = np.random.default_rng(seed)
    start = np.array([1.5, 1.5])
    goal = np.array([cfg.width - 1.5, cfg.height - 1.5])
    centres, radii = [], []
    while len(centres) < cfg.obstacles:
        c = rng.uniform([0, 0], [cfg.width, cfg.height])
        r = rng.uniform(0.5, 1.6)
        if min(np.linalg.norm(c - start), np.linalg.norm(c - goal)) > r + 1.0:
            centres.append(c)
            radii.append(r)
    return Env(cfg.width, cfg.height, np.array(centres), np.array(radii), start, goal)
