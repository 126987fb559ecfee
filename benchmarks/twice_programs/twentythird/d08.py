"""Hyperparameter search for a spiral classifier with worker processes.

A random search suggests configurations, the trials run in a pool of
workers, and the best configuration, a table of all trials and the learning
curves are written to the run folder.

Modelled on: https://stackoverflow.com/questions/63498865
"""
import csv
import json
import logging
import random

import numpy as np

from d08_pkg.runner import run
from d08_pkg.space import Choice, LogUniform, RandomSearch

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

SEED = 42
SPACE = {
    "lr": LogUniform(0.01, 0.5),
    "hidden": Choice(8, 16, 32),
    "batch": Choice(30, 60, 120),
    "momentum": Choice(0.0, 0.5, 0.9),
}


def write_table(results, path):
    with open(path, "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["trial", *SPACE, "accuracy", "loss", "iteration"])
        for r in results:
            best = r["best"]
            out.writerow([r["trial"], *(r["config"][k] for k in SPACE),
                          f"{best['accuracy']:.5f}", f"{best['loss']:.5f}", best["iteration"]])


def importance(results, name):
    """Spread of the mean accuracy over the values of one option."""
    groups = {}
    for r in results:
        groups.setdefault(r["config"][name], []).append(r["best"]["accuracy"])
    means = [np.mean(v) for v in groups.values()]
    return float(max(means) - min(means))


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    search = RandomSearch(SPACE, seed=SEED)
    results = run(search, num_samples=16, iterations=80)
    write_table(results, "trials.csv")
    ranked = sorted(results, key=lambda r: (-r["best"]["accuracy"], r["trial"]))
    with open("best.json", "w") as fh:
        json.dump({"config": ranked[0]["config"], "best": ranked[0]["best"]}, fh, indent=2)
    with open("curves.json", "w") as fh:
        json.dump({r["trial"]: [round(h["loss"], 6) for h in r["history"]] for r in results}, fh)
    print("trials:", len(results))
    for r in ranked[:5]:
        print("  #%02d accuracy %.4f loss %.4f %s" %
              (r["trial"], r["best"]["accuracy"], r["best"]["loss"], r["config"]))
    for name in ("hidden", "batch", "momentum"):
        print("spread over %-9s %.4f" % (name, importance(results, name)))


if __name__ == "__main__":
    main()
