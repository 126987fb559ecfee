"""Case records of a made-up country."""
import numpy as np
import pandas as pd

from .model import run

POPULATION = 8_900_000
TRUE = [dict(theta=.012, kappa=.0012, rho=.23, sigma=.06),
        dict(theta=.006, kappa=.0010, rho=.085, sigma=.07),
        dict(theta=.003, kappa=.0007, rho=.14, sigma=.08),
        dict(theta=.002, kappa=.0005, rho=.095, sigma=.085)]
PHASES = [("0th", 0, 34), ("1st", 34, 90), ("2nd", 90, 150), ("3rd", 150, 200)]


def load_records(seed):
    rng = np.random.default_rng(seed)
    y = np.array([POPULATION - 400.0, 380.0, 15.0, 5.0])
    parts = []
    for (_, a, b), p in zip(PHASES, TRUE):
        out = run(y, b - a + 1, population=POPULATION, **p)
        parts.append(out[:-1])
        y = out[-1]
    x = np.vstack(parts)
    daily = np.diff(np.vstack([x[:1], x]), axis=0)
    noise = rng.lognormal(0, 0.12, (len(x), 2))
    rec = np.cumsum(np.maximum(daily[:, 2], 0) * noise[:, 0]) + 15
    fat = np.cumsum(np.maximum(daily[:, 3], 0) * noise[:, 1]) + 5
    weekday = 1 + 0.12 * np.sin(2 * np.pi * np.arange(len(x)) / 7)
    conf = np.cumsum(np.maximum(-daily[:, 0], 0) * weekday * rng.lognormal(0, 0.08, len(x))) + 400
    inf = np.maximum(conf - rec - fat, 1)
    df = pd.DataFrame({"S": POPULATION - conf, "I": inf, "R": rec, "F": fat}).round()
    return df, POPULATION
