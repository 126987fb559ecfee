"""Online logistic regression over a feature file, progressive validation."""
import argparse
import json
import math
from pathlib import Path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("features", type=Path)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--l2", type=float, default=1e-4)
    p.add_argument("--model", type=Path, required=True)
    a = p.parse_args()
    w, bias, loss, correct, n = None, 0.0, 0.0, 0, 0
    with open(a.features) as fh:
        for line in fh:
            _, label, *vals = line.rstrip("\n").split("\t")
            y, x = int(label), [float(v) for v in vals]
            if w is None:
                w = [0.0] * len(x)
            z = bias + sum(wi * xi for wi, xi in zip(w, x))
            prob = 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
            loss -= math.log(max(1e-12, prob if y else 1 - prob))
            correct += int((prob > 0.5) == bool(y))
            step = a.lr / math.sqrt(1 + 0.01 * n)
            g = prob - y
            w = [wi - step * (g * xi + a.l2 * wi) for wi, xi in zip(w, x)]
            bias -= step * g
            n += 1
    out = {"rows": n, "progressive_loss": round(loss / n, 8), "accuracy": round(correct / n, 6),
           "weights": [round(v, 8) for v in w], "bias": round(bias, 8)}
    a.model.write_text(json.dumps(out, indent=2))
    print(json.dumps({k: out[k] for k in ("rows", "progressive_loss", "accuracy")}))


if __name__ == "__main__":
    main()
