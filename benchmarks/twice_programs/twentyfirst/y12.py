"""Scenario analysis of an epidemic: trend phases, parameter estimation, forecast.

Splits the case records at the policy dates, estimates the SIR-F parameters of
each phase, simulates the phases one after the other and forecasts the next two
months for the planning meeting.

Modelled on: https://github.com/lisphilar/covid19-sir/issues/15
"""
import json
import logging
import time

import pandas as pd

from y12_pkg.estimator import Estimator
from y12_pkg.records import PHASES, load_records
from y12_pkg.scenario import Scenario

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("scenario")


def main():
    t0 = time.perf_counter()
    records, population = load_records(seed=9)
    scenario = Scenario(population)
    for name, start, stop in PHASES:
        est = Estimator(records.iloc[start:stop], population)
        best, score = est.run(n_trials=200)
        scenario.add(name, start, stop, best)
        log.info("%s: RMSLE %.5f after %d trials", name, score, len(est.study.trials))
        print(f"{name}  Rt {scenario.reproduction(name):.5f}  " +
              "  ".join(f"{k} {v:.6f}" for k, v in best.items()) + f"  RMSLE {score:.6f}")
    sim = scenario.simulate(records.iloc[0], days_ahead=60)
    sim.to_csv("simulated.csv", index_label="day", float_format="%.3f")
    scenario.table().to_csv("phases.csv", index=False)
    outlook = scenario.outlook(sim, len(records))
    with open("outlook.json", "w") as fh:
        json.dump(outlook, fh, indent=1)
    print(pd.Series(outlook).to_string())
    log.info("finished in %.2f s", time.perf_counter() - t0)


if __name__ == "__main__":
    main()
