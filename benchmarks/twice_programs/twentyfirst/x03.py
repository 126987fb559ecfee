"""Independence screening of brain-region signals against phenotypes.

Runs distance correlation, Hilbert-Schmidt and a nearest-neighbour test on a
set of synthetic region/phenotype pairs, with permutation p-values, and
writes one table for the paper plus the null distributions for the figure.

Modelled on: https://github.com/neurodata/mgcpy-old/issues/161
"""
import json
import logging
import time

import numpy as np
import pandas as pd

from x03_pkg.correction import benjamini_hochberg
from x03_pkg.data import make_pairs
from x03_pkg.dcorr import DCorr
from x03_pkg.hsic import HSIC
from x03_pkg.knn import NeighbourTest

REPLICATES = 400
N_SAMPLES = 70


def main():
    logging.basicConfig(level=logging.INFO,
                        format="[%(asctime)s] %(levelname)s %(message)s")
    log = logging.getLogger("screen")
    start = time.time()
    pairs = make_pairs(n_samples=N_SAMPLES, seed=20190722)
    tests = [DCorr(), HSIC(), NeighbourTest(k=6)]
    log.info("%d pairs, %d tests, %d permutations",
             len(pairs), len(tests), REPLICATES)

    rows, nulls = [], {}
    for test in tests:
        for pair in pairs:
            p_value, meta = test.p_value(pair.x, pair.y, REPLICATES)
            rows.append({"test": test.name, "pair": pair.name,
                         "statistic": meta["statistic"], "p_value": p_value,
                         "null_mean": float(meta["null"].mean()),
                         "dependent": pair.dependent})
            nulls[f"{test.name}_{pair.name}"] = meta["null"]
        log.info("%s finished", test.name)

    table = pd.DataFrame(rows)
    table["q_value"] = table.groupby("test")["p_value"].transform(
        benjamini_hochberg)
    table["selected"] = table["q_value"] < 0.05
    table.to_csv("screening.csv", index=False, float_format="%.8f")
    np.savez("nulls.npz", **nulls)

    summary = {}
    for name, part in table.groupby("test"):
        hits = part[part.selected]
        summary[name] = {
            "selected": int(part.selected.sum()),
            "true_positive": int((hits.dependent).sum()),
            "mean_p": float(part.p_value.mean()),
            "mean_null": float(part.null_mean.mean()),
        }
        print(f"{name:10s} selected {summary[name]['selected']:2d} "
              f"mean p {summary[name]['mean_p']:.5f} "
              f"null {summary[name]['mean_null']:.6f}")
    with open("summary.json", "w") as fh:
        json.dump(summary, fh, indent=1, sort_keys=True)
    log.info("took %.1f s", time.time() - start)


if __name__ == "__main__":
    main()
