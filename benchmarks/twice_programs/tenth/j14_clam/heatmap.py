"""Modelled on https://github.com/mahmoodlab/CLAM/pull/314. Scores the validation slides and exports patch attention for the heatmaps."""
import argparse
import csv
import json
import os

import numpy as np
import torch

from model import AttentionMIL, load_bags, split


def load_model(cfg, path):
    model = AttentionMIL(cfg["feat_dim"], cfg["hidden"], cfg["dropout"])
    model.load_state_dict(torch.load(path, weights_only=True))  # cause
    return model


def score_slide(model, x):
    with torch.inference_mode():
        logits, attention = model(x)  # cause
        prob = torch.softmax(logits, dim=0)
    return prob.numpy(), attention.numpy()


def to_percentile(scores):
    order = scores.argsort(kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(len(scores))
    return ranks / max(1, len(scores) - 1) * 100.0


def auc(labels, scores):
    pos = [s for y, s in zip(labels, scores) if y == 1]
    neg = [s for y, s in zip(labels, scores) if y == 0]
    wins = sum((p > n) + 0.5 * (p == n) for p in pos for n in neg)
    return wins / (len(pos) * len(neg))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    ap.add_argument("--bags", required=True)
    ap.add_argument("--ckpt", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    cfg = json.load(open(args.config))
    torch.set_num_threads(1)
    _, slides = split(load_bags(args.bags), cfg["val_fraction"])
    model = load_model(cfg, args.ckpt)

    rows, labels, probs = [], [], []
    with open(os.path.join(args.out, "patches.csv"), "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["slide", "x", "y", "attention", "percentile"])
        for name, x, coords, y in slides:
            p, a = score_slide(model, x)
            pct = to_percentile(a)
            for k in np.argsort(-a, kind="stable")[: cfg["top_k"]]:
                w.writerow([name, int(coords[k, 0]), int(coords[k, 1]), f"{a[k]:.6f}", f"{pct[k]:.1f}"])
            rows.append({"slide": name, "label": y, "pred": int(p.argmax()), "p_tumor": round(float(p[1]), 6)})
            labels.append(y)
            probs.append(float(p[1]))
            print(f"{name} label={y} p_tumor={p[1]:.4f}")
    acc = float(np.mean([r["label"] == r["pred"] for r in rows]))
    summary = {"n": len(rows), "accuracy": acc, "auc": round(auc(labels, probs), 4), "slides": rows}
    with open(os.path.join(args.out, "summary.json"), "w") as fh:
        json.dump(summary, fh, indent=2)
    print(f"accuracy {acc:.3f} auc {summary['auc']:.3f}")


if __name__ == "__main__":
    main()
