"""Predictions and metrics for the hold-out complexes."""
import csv
import json
import logging

import numpy as np
import torch


@torch.no_grad()
def predict(model, x, batch=32):
    model.eval()
    out = [model(*[t[i:i + batch] for t in x]) for i in range(0, len(x[0]), batch)]
    return torch.cat(out).numpy()


def metrics(y, p):
    return {"rmse": float(np.sqrt(((y - p) ** 2).mean())),
            "pearson": float(np.corrcoef(y, p)[0, 1]),
            "mae": float(np.abs(y - p).mean())}


def write_predictions(path, idx, y, pred):
    with open(path, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["complex", "affinity", "predicted"])
        for i, a, b in zip(idx, y, pred):
            w.writerow([int(i), f"{a:.4f}", f"{b:.6f}"])


def score(model, scaler, data, out):
    test = data["test"]
    x = [torch.from_numpy(data[k][test]) for k in ("frag1", "frag2", "both")]
    pred = scaler.inverse(predict(model, x))
    y = data["y"][test]
    write_predictions(out, test, y, pred)
    m = metrics(y, pred)
    with open("metrics.json", "w") as fh:
        json.dump(m, fh, indent=1)
        fh.write("\n")
    logging.info("scored %d complexes", len(test))
    print(f"rmse {m['rmse']:.5f}  pearson {m['pearson']:.5f}")
    return m
