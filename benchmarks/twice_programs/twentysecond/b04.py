"""Estimate hourly rain from radar scans, by gauge, with dask.

A file of radar scans (several per gauge and hour) is read in blocks, cleaned,
and for each gauge the rain amount is integrated over the minutes passed.
The estimates are written as csv, with an error score against the gauges.

Modelled on: https://github.com/dask/dask/issues/665
"""
import csv
import logging
import time

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("radar")

SEED = 665
N_GAUGES = 2000
SCAN_FILE = "scans.csv"
BLOCK = "16KB"


def write_scans(path):
    """Make the scans; minutes ascend within each gauge."""
    rng = np.random.default_rng(SEED)
    truth = {}
    with open(path, "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["Id", "minutes_past", "radardist_km", "Ref", "RhoHV", "Zdr"])
        block = []
        for gauge in range(1, N_GAUGES + 1):
            n = int(rng.integers(4, 14))
            minutes = np.sort(rng.choice(60, size=n, replace=False))
            level = rng.normal(24, 9)
            ref = level + np.cumsum(rng.normal(0, 2.5, n))
            distance = float(rng.integers(2, 20))
            block.append((gauge, minutes, distance, ref, rng.uniform(0.8, 1.0, n), rng.normal(0.5, 0.8, n)))
            rate = (10 ** (ref / 10) / 200) ** 0.625
            truth[gauge] = float(rate.mean() * rng.lognormal(0, 0.2))
            if len(block) == 250 or gauge == N_GAUGES:
                rows = []
                for g, mins, dist, refs, rho, zdr in block:
                    for k in range(len(mins)):
                        shown = "" if rho[k] < 0.83 else f"{refs[k]:.1f}"
                        rows.append((int(mins[k]), g, dist, shown, f"{rho[k]:.4f}", f"{zdr[k]:.3f}"))
                rows.sort()
                for minute, g, dist, shown, rho_k, zdr_k in rows:
                    writer.writerow([g, minute, dist, shown, rho_k, zdr_k])
                block = []
    return truth


def marshall_palmer(ref, radar_mmperhr):
    """Time integral of the rain rate over one hour."""
    valid_time = np.zeros_like(ref)
    valid_time[0] = radar_mmperhr[0]
    for k in range(1, len(ref)):
        valid_time[k] = radar_mmperhr[k] - radar_mmperhr[k - 1]
    valid_time[-1] += 60 - valid_time.sum()
    valid_time = valid_time / 60.0
    total = 0.0
    for dbz, hours in zip(ref, valid_time):
        if np.isfinite(dbz):
            total += (10 ** (dbz / 10) / 200) ** 0.625 * abs(hours)
    return total


def estimate(hour):
    """Rain of one gauge from all of its scans."""
    ref = hour["Ref"].to_numpy(dtype=float)
    minutes = hour["minutes_past"].to_numpy(dtype=float)
    ref = np.where(hour["RhoHV"].to_numpy() > 0.9, ref + 0.3, ref)
    amount = marshall_palmer(ref, minutes)
    near = 1.0 if hour["radardist_km"].iloc[0] < 12 else 0.93
    return amount * near


def clean(frame):
    frame = frame.copy()
    frame["Ref"] = frame["Ref"].clip(lower=-10, upper=53)
    frame["Zdr"] = frame["Zdr"].fillna(0.0)
    return frame[frame["radardist_km"] < 19]


def load(path):
    alldata = dd.read_csv(path, blocksize=BLOCK, dtype={"Ref": "float64"})
    log.info("%d partitions", alldata.npartitions)
    return alldata.map_partitions(clean)


def estimate_all(alldata):
    columns = ["minutes_past", "radardist_km", "Ref", "RhoHV"]
    grouped = alldata.groupby("Id")[columns]
    return grouped.apply(estimate, meta=("Expected", "f8")).compute()  # cause


def score(estimates, truth):
    gauges = estimates.index.to_numpy()
    expected = np.array([truth[g] for g in gauges])
    error = estimates.to_numpy() - expected
    return {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt((error**2).mean())),
        "bias": float(error.mean()),
        "corr": float(np.corrcoef(estimates.to_numpy(), expected)[0, 1]),
    }


def histogram(values, edges):
    counts, _ = np.histogram(values, bins=edges)
    return [f"{lo:5.1f}-{hi:5.1f} {c}" for lo, hi, c in zip(edges[:-1], edges[1:], counts)]


def main():
    start = time.time()
    truth = write_scans(SCAN_FILE)
    log.info("scans written after %.1f s", time.time() - start)
    with dask.config.set(scheduler="threads", num_workers=4):
        alldata = load(SCAN_FILE)
        estimates = estimate_all(alldata).sort_index()
    log.info("estimates ready after %.1f s", time.time() - start)
    estimates.round(6).to_csv("estimates.csv", header=True)
    result = score(estimates, truth)
    print("gauges", len(estimates))
    for name, value in result.items():
        print(f"{name} {value:.6f}")
    for line in histogram(estimates.to_numpy(), [0, 0.5, 1, 2, 4, 8, 1000]):
        print(line)
    worst = (estimates - pd.Series(truth)).abs().dropna().sort_values(ascending=False).head(5)
    print("worst gauges", " ".join(str(i) for i in worst.index))


if __name__ == "__main__":
    main()
