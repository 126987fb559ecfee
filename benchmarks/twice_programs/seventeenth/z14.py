"""Hydraulic tomography on a square aquifer: recover log-conductivity from heads.

Modelled on https://github.com/jonghyunharrylee/pyPCGA/issues/18

A reference field is drawn, cross-hole pumping tests are simulated with a
finite-volume flow solver, and the field is estimated with a Gauss-Newton
geostatistical inversion that works in a low-rank basis of the prior
covariance.  Conditional realisations are written next to the estimate.
"""
import json
import logging
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, splu
from scipy.spatial.distance import cdist

log = logging.getLogger("tomography")


@dataclass
class Config:
    n: int = 24
    length: float = 240.0
    prior_std: float = 1.1
    corr: float = 55.0
    rank: int = 48
    obs_std: float = 0.02
    wells: int = 4
    max_iter: int = 6
    tol: float = 1e-3
    n_real: int = 20
    seed: int = 20221204
    out: str = "inversion"
    levels: list = field(default_factory=lambda: [0.05, 0.5, 0.95])


class FlowModel:
    """Steady confined flow, fixed heads left and right, no flow elsewhere."""

    def __init__(self, cfg: Config):
        self.n = cfg.n
        self.h = cfg.length / cfg.n
        idx = np.arange(cfg.n * cfg.n).reshape(cfg.n, cfg.n)
        self.idx = idx
        self.a = np.concatenate([idx[:, :-1].ravel(), idx[:-1, :].ravel()])
        self.b = np.concatenate([idx[:, 1:].ravel(), idx[1:, :].ravel()])
        self.left = idx[:, 0]
        self.right = idx[:, -1]
        where = np.linspace(3, cfg.n - 4, cfg.wells).round().astype(int)
        self.wells = idx[np.ix_(where, where)].ravel()
        self.pumped = self.wells[:: max(1, len(self.wells) // 6)]

    @property
    def m(self):
        return self.n * self.n

    def operator(self, logk):
        k = np.exp(logk)
        t = 2.0 * k[self.a] * k[self.b] / (k[self.a] + k[self.b])
        diag = np.zeros(self.m)
        np.add.at(diag, self.a, t)
        np.add.at(diag, self.b, t)
        diag[self.left] += 2.0 * k[self.left]
        diag[self.right] += 2.0 * k[self.right]
        rows = np.concatenate([self.a, self.b, np.arange(self.m)])
        cols = np.concatenate([self.b, self.a, np.arange(self.m)])
        vals = np.concatenate([-t, -t, diag])
        return sparse.csc_matrix((vals, (rows, cols)), shape=(self.m, self.m)), k

    def heads(self, logk):
        matrix, k = self.operator(logk)
        lu = splu(matrix)
        rhs = np.zeros((self.m, len(self.pumped)))
        rhs[self.left, :] += (2.0 * k[self.left])[:, None]
        for j, cell in enumerate(self.pumped):
            rhs[cell, j] -= 0.8
        return lu.solve(rhs)

    def observe(self, logk):
        return self.heads(logk)[self.wells].T.ravel()


class Prior:
    """Exponential covariance kept as its leading eigenpairs."""

    def __init__(self, cfg: Config):
        c = (np.arange(cfg.n) + 0.5) * cfg.length / cfg.n
        xx, yy = np.meshgrid(c, c)
        self.xy = np.column_stack([xx.ravel(), yy.ravel()])
        self.cov = cfg.prior_std ** 2 * np.exp(-cdist(self.xy, self.xy) / cfg.corr)
        self.rank = cfg.rank

    def matvec(self, v):
        return self.cov @ v

    def factorise(self):
        m = len(self.xy)
        op = LinearOperator((m, m), matvec=self.matvec, dtype=float)
        vals, vecs = eigsh(op, k=self.rank, which="LM", tol=1e-8)  # cause
        order = np.argsort(vals)[::-1]
        vals, vecs = vals[order], vecs[:, order]
        log.info("prior: %d of %d modes, %.1f %% of the variance", self.rank, m,
                 100.0 * vals.sum() / np.trace(self.cov))
        return vals, vecs

    def draw(self, rng):
        jitter = 1e-8 * np.eye(len(self.xy))
        return np.linalg.cholesky(self.cov + jitter) @ rng.standard_normal(len(self.xy))


class Inversion:
    def __init__(self, cfg, model, basis, obs):
        self.cfg = cfg
        self.model = model
        self.basis = basis
        self.obs = obs
        self.history = []

    def field_of(self, z):
        return self.basis @ z

    def jacobian(self, z, base):
        step = 1e-4
        jac = np.empty((len(base), len(z)))
        for j in range(len(z)):
            dz = z.copy()
            dz[j] += step
            jac[:, j] = (self.model.observe(self.field_of(dz)) - base) / step
        return jac

    def objective(self, z, pred):
        r = (self.obs - pred) / self.cfg.obs_std
        return 0.5 * float(r @ r) + 0.5 * float(z @ z)

    def gauss_newton(self, target, z0):
        z = z0.copy()
        pred = self.model.observe(self.field_of(z))
        best = self.objective(z, pred)
        for it in range(1, self.cfg.max_iter + 1):
            began = time.perf_counter()
            jac = self.jacobian(z, pred)
            lhs = jac.T @ jac / self.cfg.obs_std ** 2 + np.eye(len(z))
            rhs = jac.T @ (target - pred) / self.cfg.obs_std ** 2 - z
            delta = np.linalg.solve(lhs, rhs)
            scale = 1.0
            while scale > 1e-3:
                trial = z + scale * delta
                tp = self.model.observe(self.field_of(trial))
                value = self.objective(trial, tp)
                if value < best:
                    break
                scale *= 0.5
            gain = best - value
            z, pred = trial, tp
            log.info("iter %d  objective %.5f  step %.3f  (%.2f s)", it, value, scale,
                     time.perf_counter() - began)
            self.history.append({"iter": it, "objective": value, "step": scale})
            if gain < self.cfg.tol * best:
                best = value
                break
            best = value
        self.jac = self.jacobian(z, pred)
        return z, pred

    def posterior(self, z, rng):
        lhs = self.jac.T @ self.jac / self.cfg.obs_std ** 2 + np.eye(len(z))
        chol = np.linalg.cholesky(np.linalg.inv(lhs))
        xi = rng.standard_normal((len(z), self.cfg.n_real))
        return self.basis @ (z[:, None] + chol @ xi)


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s %(name)s %(levelname)s %(message)s")
    cfg = Config()
    rng = np.random.default_rng(cfg.seed)
    np.random.seed(cfg.seed)
    out = Path(cfg.out)
    out.mkdir(parents=True, exist_ok=True)
    log.info("writing to %s", out.resolve())

    model = FlowModel(cfg)
    prior = Prior(cfg)
    truth = prior.draw(rng)
    clean = model.observe(truth)
    obs = clean + cfg.obs_std * rng.standard_normal(len(clean))
    log.info("%d cells, %d wells, %d pumped, %d observations", model.m,
             len(model.wells), len(model.pumped), len(obs))

    vals, vecs = prior.factorise()
    inv = Inversion(cfg, model, vecs * np.sqrt(vals), obs)
    z, pred = inv.gauss_newton(obs, np.zeros(cfg.rank))
    best = inv.field_of(z)
    reals = inv.posterior(z, rng)

    rmse_obs = float(np.sqrt(np.mean((pred - obs) ** 2)))
    rmse_field = float(np.sqrt(np.mean((best - truth) ** 2)))
    corr = float(np.corrcoef(best, truth)[0, 1])
    bands = np.quantile(reals, cfg.levels, axis=1)
    cover = float(np.mean((truth >= bands[0]) & (truth <= bands[-1])))
    log.info("head rmse %.6f  field rmse %.6f  corr %.6f  coverage %.4f",
             rmse_obs, rmse_field, corr, cover)

    np.savetxt(out / "estimate.csv", best.reshape(cfg.n, cfg.n), delimiter=",", fmt="%.6f")
    np.savetxt(out / "realisations.csv", reals[::17], delimiter=",", fmt="%.5f")
    report = {"config": asdict(cfg), "history": inv.history, "rmse_heads": rmse_obs,
              "rmse_field": rmse_field, "corr": corr, "coverage": cover}
    (out / "report.json").write_text(json.dumps(report, indent=2))
    print(f"mean of realisations {reals.mean():.6f}, spread {reals.std(axis=1).mean():.6f}")


if __name__ == "__main__":
    main()
