"""Label-free quantification: which proteoforms change between two conditions?

Reads simulated intensities of replicates, fills the missing values, tests each
proteoform and estimates the false discovery rate by sample permutations.
Writes quantified.csv, significant.json and volcano.npz.
Modelled on: https://github.com/smith-chem-wisc/ProteoformSuite/issues/431
"""
import json
import logging
import time

import numpy as np

from v07_pkg.experiment import simulate_experiment
from v07_pkg.imputation import Background, impute
from v07_pkg.output import summary, write_table
from v07_pkg.significance import permutation_fdr, test_statistics

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("quant")

SEED = 431
FDR = 0.05
S0 = 0.1


def main():
    started = time.time()
    experiment = simulate_experiment(n_proteoforms=15000, n_replicates=7, seed=SEED)
    log.info("%d proteoforms in %d samples, %.1f%% missing", *experiment.intensity.shape,
             100 * np.isnan(experiment.intensity).mean())
    background = Background.from_observed(experiment.intensity, shift=-1.8, width=0.5)
    log.info("background mean %.4f sd %.4f", background.mean, background.sd)
    filled = impute(experiment.intensity, background)

    stats = test_statistics(filled, experiment.condition, S0)
    fdr = permutation_fdr(filled, experiment.condition, stats, S0)
    result = summary(experiment, stats, fdr, FDR)
    write_table(experiment, filled, stats, fdr, "quantified.csv")
    with open("significant.json", "w") as fh:
        json.dump(result, fh, indent=2)
    np.savez("volcano.npz", fold_change=stats["fold_change"], statistic=stats["d"], fdr=fdr)

    print(f"{result['n_significant']} proteoforms at {FDR:.0%} FDR, {result['n_true']} of them truly changing")
    print(f"mean absolute fold change {result['mean_abs_fold_change']:.10f}")
    print("top:", ", ".join(result["top"][:5]))
    log.info("finished in %.1f s", time.time() - started)


if __name__ == "__main__":
    main()
