"""Variable selection for body-fat regression with a genetic algorithm.

The fitness of a set of variables is its cross-validated error; the population
is evaluated by a pool of workers.
Writes evolution.csv, selection.json and hall_of_fame.npy.
Modelled on: https://github.com/luca-scr/GA/issues/2
"""
import json
import logging
import multiprocessing as mp
import time

import numpy as np

from v04_pkg.data import load_body_fat
from v04_pkg.evolution import Evolution
from v04_pkg.report import selection_report, write_evolution

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("select")

SEED = 20160505


def main():
    started = time.time()
    X, y, names = load_body_fat(n=252, seed=SEED)
    log.info("%d subjects, %d candidate variables", *X.shape)
    context = mp.get_context("spawn")
    with context.Pool(2) as pool:
        evolution = Evolution(X, y, population=60, generations=50, seed=SEED, mapper=pool.map)
        best = evolution.run()

    write_evolution(evolution.history, "evolution.csv")
    np.save("hall_of_fame.npy", np.array([list(ind) for ind in evolution.hall]))
    report = selection_report(best, evolution, X, y, names)
    with open("selection.json", "w") as fh:
        json.dump(report, fh, indent=2)
    print("selected:", ", ".join(report["selected"]))
    print(f"fitness {report['fitness']:.10f}  in-sample R2 {report['r2']:.8f}")
    log.info("finished in %.1f s", time.time() - started)


if __name__ == "__main__":
    main()
