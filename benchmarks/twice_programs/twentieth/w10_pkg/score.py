"""Turn simulated futures into risks and score them against what happened."""
import argparse
import csv
import json
import os

import numpy as np

from vocab import INDEX

TASKS = {"mortality": "DEATH", "icu": "ICU", "readmission": "ADMIT"}


def auroc(risk, label):
    order = np.argsort(risk, kind="stable")
    ranks = np.empty(len(risk))
    ranks[order] = np.arange(1, len(risk) + 1)
    for value in np.unique(risk):
        same = risk == value
        ranks[same] = ranks[same].mean()
    pos = label.sum()
    neg = len(label) - pos
    return float((ranks[label].sum() - pos * (pos + 1) / 2) / max(1, pos * neg))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--futures", required=True)
    args = ap.parse_args()
    test = np.load(os.path.join(args.data, "test.npy"))
    stored = np.load(args.futures)
    futures, prompt = stored["futures"], int(stored["prompt"])

    scores, risks = {}, {}
    for task, token in TASKS.items():
        label = (test[:, prompt:] == INDEX[token]).any(1)
        risk = (futures[:, :, prompt:] == INDEX[token]).any(2).mean(1)
        risks[task] = risk
        scores[task] = {"auroc": auroc(risk, label), "prevalence": float(label.mean()),
                        "mean_risk": float(risk.mean()),
                        "brier": float(np.mean((risk - label) ** 2))}
        print(f"{task:12s} auroc {scores[task]['auroc']:.5f}  brier {scores[task]['brier']:.5f}  "
              f"mean risk {scores[task]['mean_risk']:.5f} (observed {label.mean():.5f})")
    with open("scores.json", "w") as fh:
        json.dump(scores, fh, indent=2)
    with open("risks.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["patient", *TASKS])
        for i in range(len(test)):
            out.writerow([i, *[f"{risks[t][i]:.4f}" for t in TASKS]])


if __name__ == "__main__":
    main()
