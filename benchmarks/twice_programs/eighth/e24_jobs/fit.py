import argparse
import json
import os
import time

import numpy as np
import pandas as pd


class Logistic:
    def __init__(self, dim, seed, lr=0.1):
        self.rs = np.random.RandomState(seed)
        self.w = 0.01 * self.rs.randn(dim)
        self.b = 0.0
        self.lr = lr

    def prob(self, x):
        return 1 / (1 + np.exp(-(x @ self.w + self.b)))

    def epoch(self, x, y, batch=16):
        order = self.rs.permutation(len(x))
        for i in range(0, len(x), batch):
            rows = order[i:i + batch]
            g = self.prob(x[rows]) - y[rows]
            self.w -= self.lr * (x[rows].T @ g / len(rows) + 1e-3 * self.w)
            self.b -= self.lr * g.mean()

    def loss(self, x, y):
        p = np.clip(self.prob(x), 1e-9, 1 - 1e-9)
        return float(-(y * np.log(p) + (1 - y) * np.log(1 - p)).mean())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--features")
    ap.add_argument("--seed", type=int)
    ap.add_argument("--out")
    a = ap.parse_args()
    t = time.time()
    table = pd.read_csv(a.features)
    x = table[["mean", "std", "peak", "energy"]].to_numpy(float)
    y = table["label"].to_numpy(float)
    cut = int(0.75 * len(x))
    x = (x - x[:cut].mean(0)) / (x[:cut].std(0) + 1e-9)
    model = Logistic(x.shape[1], a.seed)
    curve = []
    for _ in range(12):
        model.epoch(x[:cut], y[:cut])
        curve.append([model.loss(x[:cut], y[:cut]), model.loss(x[cut:], y[cut:])])
    acc = float(((model.prob(x[cut:]) > 0.5) == y[cut:]).mean())
    print("pid %d loss %.6f test %.6f accuracy %.4f in %.3f s" % (os.getpid(), *curve[-1], acc, time.time() - t))
    with open(a.out, "w") as f:
        json.dump({"weights": model.w.tolist(), "curve": curve, "accuracy": acc}, f)


if __name__ == "__main__":
    main()
