"""Modelled on https://github.com/INET-Complexity/macro-main/issues/102

Builds the inputs of an agent-based macro model for a small region, runs it for six years and reports the main series.
"""
import argparse
import json
import logging
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from j22_macro.configuration import Configuration
from j22_macro.data_wrapper import DataWrapper
from j22_macro.simulation import Simulation

log = logging.getLogger("macro")


def gini(values):
    v = np.sort(np.asarray(values, dtype=float))
    n = len(v)
    return float((2 * np.arange(1, n + 1) - n - 1).dot(v) / (n * v.sum()))


def annualise(series):
    out = series.assign(year=series["quarter"] // 4)
    yearly = out.groupby("year").agg(gdp=("gdp", "sum"), cpi=("cpi", "mean"), unemployment=("unemployment", "mean"), mean_wage=("mean_wage", "mean"))
    yearly["gdp_growth"] = yearly["gdp"].pct_change().fillna(0.0)
    return yearly


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--quarters", type=int, default=24)
    ap.add_argument("--out", default="macro_out")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Configuration(seed=args.seed, n_quarters=args.quarters)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)

    t0 = time.time()
    data = DataWrapper.from_config(cfg)
    log.info("wrapper built in %.2fs, %d people reassigned", time.time() - t0, len(data.moved))
    data.individuals.to_csv(out / "individuals.csv", index=False)

    sim = Simulation(cfg, data)
    series = sim.run()
    series.to_csv(out / "series.csv", index=False, float_format="%.6f")
    yearly = annualise(series)
    yearly.to_csv(out / "yearly.csv", float_format="%.6f")
    final = {
        "gini": gini(sim.people.loc[sim.people["status"] == "employed", "wage"]),
        "cpi": float(series["cpi"].iloc[-1]),
        "gdp": float(series["gdp"].iloc[-1]),
    }
    with open(out / "summary.json", "w") as fh:
        json.dump({"configuration": asdict(cfg), "final": final}, fh, indent=2)
    print(yearly.to_string(float_format=lambda v: f"{v:.5f}"))
    print(f"final gini {final['gini']:.5f} cpi {final['cpi']:.5f} gdp {final['gdp']:.2f}")


if __name__ == "__main__":
    main()
