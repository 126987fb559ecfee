"""Tables and summary of a quantification."""
import csv

import numpy as np


def write_table(experiment, filled, stats, fdr, path):
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["proteoform", "imputed", "fold_change", "d", "fdr"])
        for i, name in enumerate(experiment.names):
            writer.writerow([name, int(np.isnan(experiment.intensity[i]).sum()), f"{stats['fold_change'][i]:.8f}",
                             f"{stats['d'][i]:.8f}", f"{fdr[i]:.6g}"])


def summary(experiment, stats, fdr, level):
    hit = fdr <= level
    order = np.argsort(-np.abs(stats["d"]), kind="stable")
    return {
        "n_tested": len(fdr),
        "n_significant": int(hit.sum()),
        "n_true": int((hit & experiment.changing).sum()),
        "mean_abs_fold_change": float(np.abs(stats["fold_change"]).mean()),
        "up": int((hit & (stats["fold_change"] > 0)).sum()),
        "down": int((hit & (stats["fold_change"] < 0)).sum()),
        "top": [experiment.names[i] for i in order[:20]],
    }
