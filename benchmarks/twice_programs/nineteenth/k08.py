"""Fit the drive parameters of a small neural population model to a recorded
dipole waveform by Bayesian optimization with expected improvement.

Modelled on: https://github.com/jonescompneurolab/hnn-core/pull/1336
"""
import csv
import json
import warnings
from datetime import datetime

import numpy as np
from scipy.stats import norm, qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

warnings.filterwarnings("ignore", category=ConvergenceWarning)

SEED = 123
DT = 0.5
CONSTRAINTS = {
    "prox_mu": (5.0, 60.0),
    "prox_weight": (0.1, 3.0),
    "dist_mu": (40.0, 110.0),
    "dist_weight": (0.1, 3.0),
}


class Network:
    """Two coupled populations driven by a proximal and a distal pulse."""

    def __init__(self, tstop=170.0):
        self.times = np.arange(0.0, tstop, DT)

    def simulate(self, prox_mu, prox_weight, dist_mu, dist_weight):
        drive_p = prox_weight * np.exp(-0.5 * ((self.times - prox_mu) / 4.0) ** 2)
        drive_d = dist_weight * np.exp(-0.5 * ((self.times - dist_mu) / 6.0) ** 2)
        e = i = 0.0
        dipole = np.empty_like(self.times)
        for n in range(len(self.times)):
            de = -e / 12.0 + drive_p[n] - 0.9 * drive_d[n] - 0.15 * i
            di = -i / 20.0 + 0.12 * e
            e, i = e + DT * de, i + DT * di
            dipole[n] = e - 0.3 * i
        return dipole


def target_dipole(network, seed):
    rng = np.random.default_rng(seed)
    clean = network.simulate(26.0, 1.1, 68.0, 1.6)
    return clean + rng.normal(0, 0.05, len(clean))


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def expected_improvement(gp, best_f, candidates):
    mean, std = gp.predict(candidates, return_std=True)
    std = np.maximum(std, 1e-9)
    z = (best_f - mean) / std
    return (best_f - mean) * norm.cdf(z) + std * norm.pdf(z)


def sample_candidates(cons, n_log2):
    """Space-filling candidates within the constraints."""
    low, high = np.array(cons).T
    sampler = qmc.Sobol(d=len(cons), scramble=True)  # cause
    return qmc.scale(sampler.random_base2(n_log2), low, high)


def bayes_opt(func, x0, cons, acquisition, maxfun=30, random_state=None):
    low, high = np.array(cons).T
    kernel = ConstantKernel(1.0) * Matern(nu=2.5, length_scale=[0.5] * len(cons)) + WhiteKernel(1e-4)
    gp = GaussianProcessRegressor(kernel=kernel, normalize_y=True, n_restarts_optimizer=1,
                                  random_state=random_state)
    X = [np.array(x0)]
    y = [func(X[0])]
    for iteration in range(maxfun - 1):
        gp.fit((np.array(X) - low) / (high - low), np.array(y))
        candidates = sample_candidates(cons, 9)
        scores = acquisition(gp, min(y), (candidates - low) / (high - low))
        X.append(candidates[int(np.argmax(scores))])
        y.append(func(X[-1]))
    return np.array(X), np.array(y)


class Optimizer:
    def __init__(self, network, constraints, max_iter=30):
        self.network = network
        self.names = list(constraints)
        self.cons = [constraints[n] for n in self.names]
        self.max_iter = max_iter

    def fit(self, target, seed):
        def func(x):
            return rmse(self.network.simulate(**dict(zip(self.names, x))), target)

        x0 = [(low + high) / 2 for low, high in self.cons]
        self.X_, self.obj_ = bayes_opt(func, x0, self.cons, expected_improvement,
                                       maxfun=self.max_iter, random_state=seed)
        self.opt_params_ = dict(zip(self.names, self.X_[int(np.argmin(self.obj_))]))
        return self


def main():
    np.random.seed(SEED)
    network = Network()
    target = target_dipole(network, SEED)
    optimizer = Optimizer(network, CONSTRAINTS, max_iter=28).fit(target, SEED)

    with open("history.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["iteration", "rmse", *optimizer.names])
        for n, (x, v) in enumerate(zip(optimizer.X_, optimizer.obj_)):
            writer.writerow([n, f"{v:.6f}", *(f"{a:.5f}" for a in x)])
    result = {
        "date": datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
        "initial_rmse": round(float(optimizer.obj_[0]), 6),
        "final_rmse": round(float(optimizer.obj_.min()), 6),
        "iterations_to_best": int(np.argmin(optimizer.obj_)),
        "params": {k: round(float(v), 4) for k, v in optimizer.opt_params_.items()},
    }
    with open("optimized.json", "w") as handle:
        json.dump(result, handle, indent=2)
    np.save("dipole.npy", network.simulate(**optimizer.opt_params_))
    print(f"RMSE {result['initial_rmse']:.4f} -> {result['final_rmse']:.4f}")
    for name, value in result["params"].items():
        print(f"  {name:12s} {value:9.4f}")


if __name__ == "__main__":
    main()
