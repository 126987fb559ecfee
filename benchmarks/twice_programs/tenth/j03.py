"""Modelled on https://github.com/data-8/datascience/issues/660

Lab notebook turned into a script: a test of jury panels against the eligible
population gives other simulated statistics each time although a seed is set.
"""
import json
import logging
import time

import numpy as np

from j03_tables import (Table, bootstrap_medians, percentile, proportions_from_counts,
                        sample_proportions)

SEED = 1231
GROUPS = ["Asian", "Black", "Latino", "White", "Other"]
ELIGIBLE = np.array([0.15, 0.18, 0.12, 0.54, 0.01])
PANEL_SIZE = 1453
SIMULATIONS = 2000
BOOTSTRAPS = 800
ALPHA = 0.05

log = logging.getLogger("lab06")


def total_variation_distance(a, b):
    return float(np.sum(np.abs(a - b)) / 2)


def make_panelists(n):
    """Panelists with group, age and years of residence."""
    rng = np.random.RandomState(SEED)
    panel_dist = np.array([0.165, 0.155, 0.115, 0.553, 0.012])
    group = rng.choice(GROUPS, n, p=panel_dist)
    age = np.clip(rng.normal(44, 13, n), 18, 90).round().astype(int)
    years = np.round(rng.gamma(2.5, 4.0, n), 1)
    return Table().with_column("group", group).with_column("age", age).with_column("years", years)


def observed_distribution(panel):
    grouped = panel.group("group")
    counts = dict(zip(grouped.column("group"), grouped.column("count")))
    return proportions_from_counts([counts.get(g, 0) for g in GROUPS])


def simulate_tvd(n_simulations):
    out = np.empty(n_simulations)
    for i in range(n_simulations):
        sample = sample_proportions(PANEL_SIZE, ELIGIBLE)
        out[i] = total_variation_distance(sample, ELIGIBLE)
    return out


def power_curve(sizes, alternative, critical_quantile):
    """Share of rejections of the null for panels of several sizes."""
    rows = []
    for size in sizes:
        null = [total_variation_distance(sample_proportions(size, ELIGIBLE), ELIGIBLE)
                for _ in range(300)]
        cut = percentile(critical_quantile, null)
        alt = [total_variation_distance(sample_proportions(size, alternative), ELIGIBLE)
               for _ in range(300)]
        rows.append((size, cut, float(np.mean(np.array(alt) > cut))))
    return rows


def age_interval(panel, group):
    ages = panel.where("group", group).column("age")
    meds = bootstrap_medians(ages, BOOTSTRAPS)
    return float(np.median(ages)), float(percentile(2.5, meds)), float(percentile(97.5, meds))


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    np.random.seed(SEED)
    started = time.time()

    panel = make_panelists(PANEL_SIZE)
    print(panel.show(5))
    observed = observed_distribution(panel)
    observed_tvd = total_variation_distance(observed, ELIGIBLE)
    log.info("observed distribution %s", dict(zip(GROUPS, observed.round(4).tolist())))
    log.info("observed tvd %.5f", observed_tvd)

    tvds = simulate_tvd(SIMULATIONS)
    p_value = float(np.mean(tvds >= observed_tvd))
    cutoff = percentile(100 * (1 - ALPHA), tvds)
    log.info("simulated tvds: mean %.6f, sd %.6f", tvds.mean(), tvds.std())

    power = power_curve([200, 400, 800, 1453], observed, 95)
    power_table = (Table().with_column("size", [r[0] for r in power])
                   .with_column("cutoff", [float(r[1]) for r in power])
                   .with_column("power", [r[2] for r in power]))
    print(power_table.show())

    intervals = {}
    for g in GROUPS[:4]:
        med, lo, hi = age_interval(panel, g)
        intervals[g] = {"median": med, "low": lo, "high": hi}
        log.info("median age of %s panelists %.1f (%.1f - %.1f)", g, med, lo, hi)

    Table().with_column("tvd", tvds).to_csv("simulated_tvds.csv")
    power_table.to_csv("power.csv")
    result = {
        "observed_tvd": round(observed_tvd, 6),
        "p_value": p_value,
        "cutoff": round(float(cutoff), 6),
        "mean_tvd": round(float(tvds.mean()), 8),
        "reject": bool(observed_tvd > cutoff),
        "age_intervals": intervals,
    }
    with open("lab06_result.json", "w") as fh:
        json.dump(result, fh, indent=2, sort_keys=True)
    print(f"p-value {p_value:.4f}, cutoff {cutoff:.6f}, mean tvd {tvds.mean():.8f}")
    log.info("done in %.2f s", time.time() - started)


if __name__ == "__main__":
    main()
