"""Random sample consensus for the fundamental matrix."""
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np


@dataclass
class Model:
    matrix: np.ndarray
    inliers: np.ndarray
    score: float
    tested: int
    threshold: float
    median_cost: float


def _normaliser(pts):
    c = pts.mean(axis=0)
    s = np.sqrt(2) / np.sqrt(((pts - c) ** 2).sum(axis=1)).mean()
    return np.array([[s, 0, -s * c[0]], [0, s, -s * c[1]], [0, 0, 1]])


def _homogeneous(pts):
    return np.column_stack([pts, np.ones(len(pts))])


def eight_point(left, right):
    tl, tr = _normaliser(left), _normaliser(right)
    a, b = _homogeneous(left) @ tl.T, _homogeneous(right) @ tr.T
    design = np.einsum("ni,nj->nij", b, a).reshape(len(a), 9)
    f = np.linalg.svd(design)[2][-1].reshape(3, 3)
    u, s, vt = np.linalg.svd(f)
    f = u @ np.diag([s[0], s[1], 0]) @ vt
    return tr.T @ f @ tl


def sampson(f, a, b):
    fa, fb = a @ f.T, b @ f
    num = np.einsum("ni,ni->n", b, fa) ** 2
    return num / (fa[:, 0] ** 2 + fa[:, 1] ** 2 + fb[:, 0] ** 2 + fb[:, 1] ** 2)


class RobustEstimator:
    def __init__(self, cfg):
        self.cfg = cfg
        self.lock = threading.Lock()
        self.fits = 0

    def _needed(self, inlier_ratio):
        """Hypotheses needed for the requested confidence."""
        good = inlier_ratio ** self.cfg.sample_size
        if good <= 1e-9:
            return self.cfg.max_iterations
        if good >= 1.0:
            return 1
        n = np.log(1 - self.cfg.confidence) / np.log(1 - good)
        return int(min(np.ceil(n), self.cfg.max_iterations))

    def _score(self, number):
        """One minimal sample, its truncated cost and inlier ratio."""
        left, right, a, b = self.data
        rng = np.random.default_rng([self.cfg.seed, self.fits, number])
        sample = rng.choice(len(left), self.cfg.sample_size, replace=False)
        f = eight_point(left[sample], right[sample])
        err = sampson(f, a, b)
        limit = self.cfg.pixel_threshold ** 2
        return float(np.minimum(err, limit).sum()), float((err < limit).mean()), f

    def _work(self, numbers):
        """Score a share of the hypotheses against the common best."""
        for number in numbers:
            if self.tested >= self.exit_at:  # cause
                break
            cost, ratio, f = self._score(number)
            with self.lock:
                self.tested += 1
                self.costs[number] = cost
                if (cost, number) < self.best[:2]:
                    self.best = (cost, number, f)
                    self.exit_at = min(self.exit_at, self._needed(ratio))

    def fit(self, left, right):
        n = self.cfg.max_iterations
        self.fits += 1
        self.data = (left, right, _homogeneous(left), _homogeneous(right))
        self.tested, self.exit_at = 0, n
        self.best = (np.inf, n, None)
        self.costs = np.full(n, np.nan)
        shares = np.array_split(np.arange(n), self.cfg.workers)
        with ThreadPoolExecutor(max_workers=self.cfg.workers) as pool:
            list(pool.map(self._work, shares))
        cost, _, f = self.best
        _, _, a, b = self.data
        inliers = sampson(f, a, b) < self.cfg.pixel_threshold ** 2
        if inliers.sum() >= 2 * self.cfg.sample_size:
            f = eight_point(left[inliers], right[inliers])
            inliers = sampson(f, a, b) < self.cfg.pixel_threshold ** 2
        return Model(f, inliers, cost, self.tested, self.cfg.pixel_threshold,
                     float(np.nanmedian(self.costs)))
