"""Products with an RBF kernel matrix that is never stored whole."""
import numpy as np


class TiledKernel:
    def __init__(self, x, gamma, tile=256):
        self.x = np.ascontiguousarray(x, dtype=np.float32)
        self.gamma = np.float32(gamma)
        self.sq = (self.x ** 2).sum(1)
        self.tile = tile

    def block(self, a, sa, lo, hi):
        d = sa[:, None] + self.sq[None, lo:hi] - 2 * (a @ self.x[lo:hi].T)
        return np.exp(-self.gamma * np.maximum(d, 0))

    def _apply(self, a, v):
        sa = (a ** 2).sum(1)
        out = np.zeros(len(a), dtype=np.float32)
        for lo in range(0, len(self.x), self.tile):
            hi = min(lo + self.tile, len(self.x))
            out += self.block(a, sa, lo, hi) @ v[lo:hi]
        return out

    def matvec(self, v, rows=None):
        v = v.astype(np.float32)
        stop = len(self.x) if rows is None else rows
        parts = [self._apply(self.x[i:min(i + 1024, stop)], v) for i in range(0, stop, 1024)]
        return np.concatenate(parts)

    def cross(self, z, v):
        return self._apply(np.ascontiguousarray(z, dtype=np.float32), v)
