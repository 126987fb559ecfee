"""Result files of a backfill."""
import csv
import json

import numpy as np


def save_forecasts(answers, path):
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["request", "store", "day", "lower", "median", "upper"])
        for a in answers:
            for h in range(a.request.horizon):
                writer.writerow([a.request.request_id, a.request.store, a.request.start + h,
                                 f"{a.lower[h]:.10g}", f"{a.median[h]:.10g}", f"{a.upper[h]:.10g}"])


def save_scores(answers, holdout, train_end, path):
    ape, inside, pinball = [], [], []
    by_store = {}
    for a in answers:
        r = a.request
        actual = r.scale * holdout[r.start - train_end: r.start - train_end + r.horizon]
        n = len(actual)
        error = np.abs(actual - a.median[:n]) / actual
        ape.append(error)
        inside.append((actual >= a.lower[:n]) & (actual <= a.upper[:n]))
        pinball.append(np.maximum(0.9 * (actual - a.upper[:n]), -0.1 * (actual - a.upper[:n])) / r.scale)
        by_store.setdefault(r.store, []).append(float(error.mean()))
    scores = {
        "mape": float(np.concatenate(ape).mean()),
        "coverage": float(np.concatenate(inside).mean()),
        "pinball": float(np.concatenate(pinball).mean()),
        "by_store": {str(s): float(np.mean(v)) for s, v in sorted(by_store.items())},
    }
    with open(path, "w") as fh:
        json.dump(scores, fh, indent=2)
    return scores
