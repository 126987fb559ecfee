"""Adequacy indices and tables."""
import csv

import numpy as np


def summarise(shortfalls):
    hit = shortfalls > 0
    lole = hit.sum(1)
    eue = shortfalls.sum(1)
    n = len(shortfalls)
    return {
        "LOLE": round(float(lole.mean()), 4),
        "LOLE_se": round(float(lole.std(ddof=1) / np.sqrt(n)), 4),
        "EUE": round(float(eue.mean()), 3),
        "EUE_se": round(float(eue.std(ddof=1) / np.sqrt(n)), 3),
        "LOLP": round(float((lole > 0).mean()), 4),
    }


def write_tables(shortfalls, samples_path, hours_path):
    with open(samples_path, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["sample", "hours_short", "unserved_mwh", "worst_mw"])
        for i, row in enumerate(shortfalls):
            w.writerow([i, int((row > 0).sum()), f"{row.sum():.3f}", f"{row.max():.3f}"])
    of_day = shortfalls.mean(0).reshape(-1, 24).sum(0)
    with open(hours_path, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["hour", "unserved_mwh"])
        w.writerows([h, f"{v:.4f}"] for h, v in enumerate(of_day))
