"""Modelled on https://github.com/INET-Complexity/macro-main/issues/102. Readers of the survey tables, here generated."""
import numpy as np
import pandas as pd


def read_individuals(cfg, rng):
    n = cfg.n_individuals
    age = rng.integers(16, 80, n)
    income = np.exp(rng.normal(7.4, 0.45, n))
    status = np.where(rng.random(n) < cfg.participation, "employed", "inactive")
    out = (status == "employed") & (rng.random(n) < cfg.unemployment_rate)
    status = np.where(out, "unemployed", status)
    return pd.DataFrame({"id": np.arange(n), "age": age, "education": rng.integers(1, 5, n), "wage": income.round(2), "status": status})


def read_employment_shares(cfg):
    k = len(cfg.industries)
    raw = np.array([2.0 ** (-0.9 * i) for i in range(k)])
    return pd.Series(raw / raw.sum(), index=cfg.industries)


def read_productivity(cfg):
    return pd.Series({s: 1.0 + 0.18 * i for i, s in enumerate(cfg.industries)})


def read_io_matrix(cfg, rng):
    k = len(cfg.industries)
    a = rng.gamma(0.7, 1.0, (k, k))
    return pd.DataFrame(0.45 * a / a.sum(axis=0, keepdims=True), index=cfg.industries, columns=cfg.industries)
