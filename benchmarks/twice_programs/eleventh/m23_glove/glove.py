"""GloVe with vectorised updates and AdaGrad steps."""
import logging

import numpy as np

log = logging.getLogger(__name__)


def randmatrix(m, n, lower=-0.5, upper=0.5):
    """Creates an m x n matrix of random values in [lower, upper]."""
    np.random.seed()  # cause
    return np.random.uniform(lower, upper, size=(m, n))


def log_of_array_ignoring_zeros(x):
    out = x.copy()
    nz = out > 0
    out[nz] = np.log(out[nz])
    return out


class Glove:
    def __init__(self, n=20, xmax=20, alpha=0.75, max_iter=150, learning_rate=0.05, tol=1e-4, display_progress=50):
        self.n = n
        self.xmax = xmax
        self.alpha = alpha
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.tol = tol
        self.display_progress = display_progress
        self.errors = []

    def _initialize(self, coincidence):
        size = coincidence.shape[0]
        self.n_words = size
        bounded = np.minimum(coincidence, self.xmax)
        self.weights = (bounded / float(self.xmax)) ** self.alpha
        self.log_coincidence = log_of_array_ignoring_zeros(coincidence)
        scale = 0.5 / self.n
        self.W = randmatrix(size, self.n, -scale, scale)
        self.C = randmatrix(size, self.n, -scale, scale)
        self.bw = randmatrix(size, 1, -scale, scale)
        self.bc = randmatrix(size, 1, -scale, scale)
        self._sums = [np.full_like(p, 0.1) for p in self._params()]

    def _params(self):
        return [self.W, self.C, self.bw, self.bc]

    def _gradients(self):
        pred = self.W @ self.C.T + self.bw + self.bc.T - self.log_coincidence
        werr = self.weights * pred
        error = 0.5 * float((werr * pred).sum())
        grads = [werr @ self.C, werr.T @ self.W, werr.sum(1, keepdims=True), werr.sum(0)[:, None]]
        return error, grads

    def _step(self, grads):
        for p, g, s in zip(self._params(), grads, self._sums):
            s += g**2
            p -= self.learning_rate * g / np.sqrt(s)

    def fit(self, coincidence):
        self._initialize(coincidence)
        for it in range(self.max_iter):
            error, grads = self._gradients()
            if not np.isfinite(error):
                raise FloatingPointError("diverged")
            self.errors.append(error)
            if it % self.display_progress == 0:
                log.info("iteration %d: error %.4f", it, error)
            if it and abs(self.errors[-2] - error) < self.tol:
                break
            self._step(grads)
        return self.W + self.C
