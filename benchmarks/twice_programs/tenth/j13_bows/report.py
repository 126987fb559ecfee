"""Accuracies with bootstrap intervals from the tables of scores."""
import argparse
import csv
import json
import os

import numpy as np


def read(path):
    with open(path) as fh:
        rows = list(csv.DictReader(fh))
    return np.array([[float(r["true"]), float(r["false"])] for r in rows])


def summarise(scores, rng, n_boot=500):
    hit = (scores[:, 0] > scores[:, 1]).astype(float)
    boot = [hit[rng.integers(0, len(hit), len(hit))].mean() for _ in range(n_boot)]
    return {
        "accuracy": round(float(hit.mean()), 6),
        "low": round(float(np.percentile(boot, 2.5)), 6),
        "high": round(float(np.percentile(boot, 97.5)), 6),
        "margin": round(float((scores[:, 0] - scores[:, 1]).mean()), 6),
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("tables", nargs="+")
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    rng = np.random.default_rng(0)
    report = {}
    for path in args.tables:
        task = os.path.basename(path)[len("scores_"):-len(".csv")]
        report[task] = summarise(read(path), rng)
        r = report[task]
        print(f"{task:12s} {r['accuracy']:.4f} [{r['low']:.4f}, {r['high']:.4f}]")
    report["macro_accuracy"] = round(float(np.mean([r["accuracy"] for r in report.values()])), 6)
    with open(args.out, "w") as fh:
        json.dump(report, fh, indent=2)
    print(f"macro accuracy {report['macro_accuracy']:.4f}")


if __name__ == "__main__":
    main()
