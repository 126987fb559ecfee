"""Step 2: run a proxy reservoir model for each realisation."""
import argparse
import csv

import numpy as np


def facies_factor(seed):
    """Geology of a realisation, from its RMS seed."""
    rng = np.random.default_rng(seed)
    field = rng.normal(size=(24, 24))
    for _ in range(4):
        field = 0.25 * (np.roll(field, 1, 0) + np.roll(field, -1, 0)
                        + np.roll(field, 1, 1) + np.roll(field, -1, 1))
    return float((field > 0.05 * field.std()).mean())


def run(p, seed, years=20):
    net = 0.6 + 0.8 * facies_factor(seed)
    stoiip = p["GRV"] * net * p["PORO"] * (1 - p["SW"]) / p["BO"]
    rate = 0.09 * p["KMULT"] ** 0.25 * stoiip
    decline = 0.10 + 0.05 * (p["OWC"] - 2010) / 10
    profile, produced = [], 0.0
    for year in range(years):
        q = rate * np.exp(-decline * year)
        q = min(q, 0.62 * stoiip - produced)
        produced += max(q, 0.0)
        profile.append(produced)
    return stoiip, profile


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("design")
    ap.add_argument("output")
    args = ap.parse_args()
    with open(args.design) as fh:
        rows = list(csv.DictReader(fh))
    with open(args.output, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["REAL", "STOIIP", "FOPT_5Y", "FOPT_20Y"])
        for r in rows:
            p = {k: float(v) for k, v in r.items() if k not in ("REAL", "RMS_SEED")}
            stoiip, profile = run(p, int(r["RMS_SEED"]))
            w.writerow([r["REAL"], f"{stoiip:.5f}", f"{profile[4]:.5f}", f"{profile[-1]:.5f}"])
    print(f"simulated {len(rows)} realisations")


if __name__ == "__main__":
    main()
