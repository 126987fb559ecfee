"""The SIR-F model in its discrete, non-dimensional form.

S -> S* -> I with a fraction theta confirmed only after death, I -> R, I -> F.
"""
import numpy as np

PARAMETERS = {"theta": (0.0, 0.05), "kappa": (0.0, 0.01), "rho": (0.02, 0.4), "sigma": (0.01, 0.15)}


def run(y0, n_days, theta, kappa, rho, sigma, population, substeps=4):
    s, i, r, f = (float(v) for v in y0)
    h = 1.0 / substeps
    out = np.empty((n_days, 4))
    for d in range(n_days):
        out[d] = s, i, r, f
        for _ in range(substeps):
            new = rho * s * i / population * h
            rec = sigma * i * h
            dead = kappa * i * h
            s -= new
            i += (1 - theta) * new - rec - dead
            r += rec
            f += dead + theta * new
    return out


def reproduction_number(theta, kappa, rho, sigma):
    return rho * (1 - theta) / (sigma + kappa)
