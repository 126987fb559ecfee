"""Modelled on https://github.com/mahmoodlab/CLAM/pull/314. Builds synthetic slide bags with patch features and coordinates."""
import argparse
import json

import numpy as np


def make_slide(rng, dim, label):
    n = int(rng.integers(30, 60))
    x = rng.normal(size=(n, dim)).astype(np.float32)
    coords = np.stack([np.arange(n) % 8, np.arange(n) // 8], axis=1) * 256
    if label == 1:
        k = max(2, n // 8)
        idx = rng.choice(n, size=k, replace=False)
        x[idx, :6] += 1.3
    return x, coords.astype(np.int32)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    cfg = json.load(open(args.config))
    rng = np.random.default_rng(cfg["seed"])
    arrays = {}
    labels = []
    for i in range(cfg["n_slides"]):
        y = i % 2
        x, c = make_slide(rng, cfg["feat_dim"], y)
        arrays[f"x_{i:03d}"] = x
        arrays[f"c_{i:03d}"] = c
        labels.append(y)
    arrays["labels"] = np.asarray(labels)
    np.savez(args.out, **arrays)
    total = sum(v.shape[0] for k, v in arrays.items() if k.startswith("x_"))
    print(f"{cfg['n_slides']} slides, {total} patches, dim {cfg['feat_dim']}")


if __name__ == "__main__":
    main()
