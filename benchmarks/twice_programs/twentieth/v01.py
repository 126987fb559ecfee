"""Spatial domains of a tissue section from neighbourhood features.

Aggregates expression over the spatial neighbours of each cell, searches the
best number of clusters by stability and assigns a domain to every cell.
Writes domains.csv, stability.json and mixture.npz.
Modelled on: https://github.com/CSOgroup/cellcharter/issues/122
"""
import json
import logging
import time

import numpy as np

from v01_pkg.autok import ClusterAutoK
from v01_pkg.features import aggregate_neighbours, reduce
from v01_pkg.tissue import simulate_section
from v01_pkg.writers import write_domains

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("domains")

RANDOM_STATE = 12345


def main():
    started = time.time()
    section = simulate_section(n_cells=2600, n_genes=30, seed=RANDOM_STATE)
    log.info("section with %d cells and %d genes", *section.expression.shape)
    latent = reduce(section.expression, n_components=6, random_state=RANDOM_STATE)
    features = aggregate_neighbours(latent, section.xy, n_layers=2, k=8)

    autok = ClusterAutoK(n_clusters=(3, 8), max_runs=4, random_state=RANDOM_STATE)
    autok.fit(features)
    for k, value in zip(autok.tested, autok.mean_stability):
        log.info("k=%d stability %.6f", k, value)
    labels = autok.predict(features)

    model = autok.best_model
    write_domains(section, labels, "domains.csv")
    np.savez("mixture.npz", means=model.means_, variances=model.variances_, weights=model.weights_)
    summary = {
        "best_k": autok.best_k,
        "stability": {str(k): float(s) for k, s in zip(autok.tested, autok.mean_stability)},
        "log_likelihood": float(model.score(features)),
        "sizes": np.bincount(labels, minlength=autok.best_k).tolist(),
    }
    with open("stability.json", "w") as fh:
        json.dump(summary, fh, indent=2)
    print("best number of domains:", summary["best_k"])
    print(f"mean log-likelihood: {summary['log_likelihood']:.10f}")
    print("domain sizes:", summary["sizes"])
    log.info("finished in %.1f s", time.time() - started)


if __name__ == "__main__":
    main()
