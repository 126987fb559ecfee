"""https://github.com/apache/spark/pull/11211 - PYTHONHASHSEED is not passed on to the Python worker processes, so hash() of strings differs there from run to run."""
import json
import os
import random
import subprocess
import sys
import time

import numpy as np

SEED = 13330
HERE = os.path.dirname(os.path.abspath(__file__))
NOUNS = [f"item{i}" for i in range(400)]


def write_reviews(path, n, seed):
    rng = np.random.default_rng(seed)
    polarity = np.random.default_rng(1).normal(size=len(NOUNS))
    with open(path, "w") as f:
        for _ in range(n):
            words = rng.integers(0, len(NOUNS), size=int(rng.integers(8, 25)))
            score = polarity[words].sum() + rng.normal()
            f.write(json.dumps({"text": " ".join(NOUNS[w] for w in words), "label": int(score > 0)}) + "\n")


class WorkerPool:
    """Starts one worker per partition with a small, clean environment."""

    def __init__(self, script):
        self.script = os.path.join(HERE, script)
        self.environ = {"PATH": os.environ.get("PATH", ""), "PYTHONDONTWRITEBYTECODE": "1"}  # cause

    def map(self, partitions):
        outputs = []
        for path in partitions:
            out = path.replace(".jsonl", ".vec.jsonl")
            t0 = time.time()
            subprocess.run([sys.executable, self.script, path, out], check=True, env=self.environ)
            print(f"partition {path} done in {time.time() - t0:.2f}s")
            outputs.append(out)
        return outputs


def load(paths, dim):
    xs, ys = [], []
    for path in paths:
        with open(path) as f:
            for line in f:
                row = json.loads(line)
                v = np.zeros(dim)
                for slot, c in row["x"]:
                    v[slot] = c
                xs.append(v)
                ys.append(row["y"])
    return np.array(xs), np.array(ys)


def fit_logistic(x, y, epochs=30, lr=0.05, l2=1e-3):
    rng = np.random.RandomState(SEED)
    w, b = np.zeros(x.shape[1]), 0.0
    for _ in range(epochs):
        for idx in np.array_split(rng.permutation(len(x)), 80):
            p = 1 / (1 + np.exp(-(x[idx] @ w + b)))
            g = p - y[idx]
            w -= lr * (x[idx].T @ g / len(idx) + l2 * w)
            b -= lr * g.mean()
    return w, b


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    print("driver", os.getpid(), time.ctime(), "hash seed", os.environ.get("PYTHONHASHSEED"))
    parts = []
    for k in range(4):
        parts.append(f"reviews-{k}.jsonl")
        write_reviews(parts[-1], 2500, seed=10 + k)
    from x19_tools.hash_features import DIM
    vectors = WorkerPool("x19_tools/hash_features.py").map(parts)
    x, y = load(vectors[:3], DIM)
    xt, yt = load(vectors[3:], DIM)
    w, b = fit_logistic(x, y)
    p = 1 / (1 + np.exp(-(xt @ w + b)))
    acc = float(((p > 0.5) == yt).mean())
    nll = float(-np.mean(yt * np.log(p + 1e-12) + (1 - yt) * np.log(1 - p + 1e-12)))
    print(f"accuracy {acc:.4f} log loss {nll:.5f}")
    with open("result.json", "w") as f:
        json.dump({"accuracy": acc, "log_loss": nll, "norm": float(np.linalg.norm(w)), "host": os.uname().nodename}, f)


if __name__ == "__main__":
    main()
