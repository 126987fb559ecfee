import argparse
import json
import random
import time

import numpy as np


def averaged_perceptron(x, y, classes, epochs):
    w = np.zeros((classes, x.shape[1]))
    total = np.zeros_like(w)
    mistakes = []
    for _ in range(epochs):
        wrong = 0
        for xi, yi in zip(x, y):
            guess = int(np.argmax(w @ xi))
            if guess != yi:
                w[yi] += xi
                w[guess] -= xi
                wrong += 1
            total += w
        mistakes.append(wrong)
    return total / (epochs * len(x)), mistakes


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    rows = [json.loads(line) for line in open(args.data)]
    x = np.array([r["x"] for r in rows], float)
    y = np.array([r["y"] for r in rows])
    test = np.random.RandomState(args.seed).rand(len(x)) < 0.25
    t0 = time.time()
    w, mistakes = averaged_perceptron(x[~test], y[~test], int(y.max()) + 1, epochs=8)
    acc = float((np.argmax(x[test] @ w.T, axis=1) == y[test]).mean())
    print(f"mistakes {mistakes} test accuracy {acc:.4f} ({time.time() - t0:.2f}s)")
    with open(args.out, "w") as f:
        json.dump({"mistakes": mistakes, "accuracy": acc, "norm": float(np.linalg.norm(w)), "date": time.ctime()}, f)


if __name__ == "__main__":
    main()
