"""Tucker decomposition of planetary waves in a model atmosphere.

A field of geopotential anomalies (time, latitude, longitude) is made from
some travelling waves, and decomposed by higher order orthogonal iteration
into a small core and one set of patterns for each axis.  The time patterns
then serve to regress an index at a station, and the scores are written out.

Modelled on: https://github.com/tensorly/tensorly/issues/138
"""
import logging
import time

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("tucker")

SEED = 138


def gaussian(axis, centre, width):
    return np.exp(-0.5 * ((axis - centre) / width) ** 2)


def make_field(rng, n_time=720, n_lat=45, n_lon=144):
    """Sum of travelling waves: wave number, turns in the record, belt, amplitude."""
    time_axis = np.arange(n_time) / n_time
    latitude = np.linspace(-88, 88, n_lat)
    longitude = 2 * np.pi * np.arange(n_lon) / n_lon
    waves = [(1, 4, (55, 14), 80.0), (2, 9, (48, 11), 55.0), (3, 15, (-52, 12), 40.0), (5, 31, (-44, 9), 25.0)]
    field = np.zeros((n_time, n_lat, n_lon))
    for number, turns, (centre, width), amplitude in waves:
        phase = rng.uniform(0, 2 * np.pi)
        angle = number * longitude[None, :] - 2 * np.pi * turns * time_axis[:, None] + phase
        field += amplitude * gaussian(latitude, centre, width)[None, :, None] * np.cos(angle)[:, None, :]
    station = field[:, 36, 20] + 0.4 * np.roll(field[:, 34, 60], 3) + rng.normal(0, 2.0, n_time)
    return field, station


def unfold(tensor, mode):
    return np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1)


def fold(matrix, mode, shape):
    full = [shape[mode]] + [s for i, s in enumerate(shape) if i != mode]
    return np.moveaxis(matrix.reshape(full), 0, mode)


def mode_dot(tensor, matrix, mode):
    shape = list(tensor.shape)
    shape[mode] = matrix.shape[0]
    return fold(matrix @ unfold(tensor, mode), mode, shape)


def multi_mode_dot(tensor, matrices, skip=None, transpose=False):
    for mode, matrix in enumerate(matrices):
        if mode == skip:
            continue
        tensor = mode_dot(tensor, matrix.T if transpose else matrix, mode)
    return tensor


def partial_svd(matrix, n_eigenvecs):
    """Left singular vectors and values, by the cheaper way for the shape."""
    dim_1, dim_2 = matrix.shape
    if n_eigenvecs >= min(dim_1, dim_2):
        u, s, _ = scipy.linalg.svd(matrix, full_matrices=False)
        return u[:, :n_eigenvecs], s[:n_eigenvecs]
    if dim_1 < dim_2:
        gram = matrix @ matrix.T
        values, vectors = scipy.sparse.linalg.eigsh(gram, k=n_eigenvecs, which="LM")  # cause
        order = np.argsort(values)[::-1]
        return vectors[:, order], np.sqrt(np.clip(values[order], 0, None))
    u, s, _ = scipy.linalg.svd(matrix, full_matrices=False)
    return u[:, :n_eigenvecs], s[:n_eigenvecs]


class Tucker:
    """Higher order orthogonal iteration with fixed ranks."""

    def __init__(self, ranks, n_iter_max=40, tol=1e-9):
        self.ranks = ranks
        self.n_iter_max = n_iter_max
        self.tol = tol
        self.errors = []

    def fit(self, tensor):
        norm = np.linalg.norm(tensor)
        self.factors = [partial_svd(unfold(tensor, m), r)[0] for m, r in enumerate(self.ranks)]
        for iteration in range(self.n_iter_max):
            for mode, rank in enumerate(self.ranks):
                projected = multi_mode_dot(tensor, self.factors, skip=mode, transpose=True)
                self.factors[mode], _ = partial_svd(unfold(projected, mode), rank)
            self.core = multi_mode_dot(tensor, self.factors, transpose=True)
            error = np.sqrt(abs(norm**2 - np.linalg.norm(self.core) ** 2)) / norm
            self.errors.append(error)
            if iteration > 2 and abs(self.errors[-2] - error) < self.tol:
                break
        return self

    def reconstruct(self):
        return multi_mode_dot(self.core, self.factors)


def regress(scores, index, n_train):
    """Ridge regression from time patterns to the station index."""
    x = np.column_stack([np.ones(len(scores)), scores])
    penalty = 1e-6 * np.eye(x.shape[1])
    coef = np.linalg.solve(x[:n_train].T @ x[:n_train] + penalty, x[:n_train].T @ index[:n_train])
    predicted = x[n_train:] @ coef
    rmse = np.sqrt(((predicted - index[n_train:]) ** 2).mean())
    return coef, rmse


def write_scores(path, scores):
    with open(path, "w") as handle:
        handle.write("step," + ",".join(f"pc{k + 1}" for k in range(scores.shape[1])) + "\n")
        for i, row in enumerate(scores):
            handle.write(f"{i}," + ",".join(f"{value:.6f}" for value in row) + "\n")


def describe(factors):
    lines = []
    for name, factor in zip(("time", "latitude", "longitude"), factors):
        peak = np.abs(factor).argmax(axis=0)
        values = factor[peak, np.arange(factor.shape[1])]
        lines.append(f"{name}: " + " ".join(f"{p}:{v:+.5f}" for p, v in zip(peak, values)))
    return lines


def main():
    start = time.time()
    rng = np.random.default_rng(SEED)
    field, index = make_field(rng)
    log.info("field %s made", field.shape)
    for ranks in ((2, 1, 2), (4, 2, 4), (6, 3, 6), (8, 4, 8)):
        model = Tucker(ranks).fit(field)
        log.info("ranks %s: %d iterations", ranks, len(model.errors))
        print(f"ranks {ranks} relative error {model.errors[-1]:.6f}")
        if ranks[0] == 6:
            chosen = model
    residual = np.abs(field - chosen.reconstruct()).max()
    scores = chosen.factors[0] @ np.diag(np.linalg.norm(unfold(chosen.core, 0), axis=1))
    coef, rmse = regress(scores, index, n_train=540)
    for line in describe(chosen.factors):
        print(line)
    print("core corner", " ".join(f"{v:+.3f}" for v in chosen.core[:2, :2, :2].ravel()))
    print("regression", " ".join(f"{v:+.4f}" for v in coef[1:]))
    print(f"station rmse {rmse:.3f}, largest residual {residual:.2f}")
    write_scores("scores.csv", scores)
    np.save("core.npy", chosen.core)
    log.info("finished in %.2f s", time.time() - start)


if __name__ == "__main__":
    main()
