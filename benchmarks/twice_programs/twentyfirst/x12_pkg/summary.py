"""Summary statistics."""
import numpy as np

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)


def quantiles(rts, choices):
    """Choice probability and RT quantiles of both boundaries."""
    upper = rts[choices > 0]
    lower = rts[choices < 0]
    qu = np.quantile(upper, LEVELS) if len(upper) > 5 else np.zeros(5)
    ql = np.quantile(lower, LEVELS) if len(lower) > 5 else np.zeros(5)
    return float((choices > 0).mean()), qu, ql


def quantile_row(name, theta, rts, choices):
    p, qu, ql = quantiles(rts, choices)
    row = {"model": name, **theta, "p_upper": p}
    for level, q in zip(LEVELS, qu):
        row[f"q{int(level * 100)}"] = q
    for level, q in zip(LEVELS, ql):
        row[f"e{int(level * 100)}"] = q
    return row
