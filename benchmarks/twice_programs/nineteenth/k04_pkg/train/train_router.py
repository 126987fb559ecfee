"""Train a topic router on conversations by softmax regression with SGD."""
import argparse
import json
import time

import numpy as np


def tokens(sample):
    words = " ".join(t["value"] for t in sample["conversations"]).split()
    return words + [f"{a}_{b}" for a, b in zip(words, words[1:])]


def featurize(samples, vocab):
    x = np.zeros((len(samples), len(vocab)), dtype=np.float32)
    for row, sample in enumerate(samples):
        for token in tokens(sample):
            if token in vocab:
                x[row, vocab[token]] += 1.0
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)


def fit(x, y, n_classes, rng, epochs=14, lr=1.5, batch=32):
    w = rng.normal(0, 0.01, (x.shape[1], n_classes))
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), batch):
            rows = order[start:start + batch]
            logits = x[rows] @ w
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(len(rows)), y[rows]] -= 1.0
            w -= lr * x[rows].T @ p / len(rows)
    return w


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-file", required=True)
    parser.add_argument("--test-file", required=True)
    parser.add_argument("--report", required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    started = time.time()

    with open(args.train_file) as handle:
        train = json.load(handle)
    with open(args.test_file) as handle:
        test = json.load(handle)
    classes = sorted({s["topic"] for s in train})
    vocab = {t: i for i, t in enumerate(sorted({t for s in train for t in tokens(s)}))}
    y_train = np.array([classes.index(s["topic"]) for s in train])
    y_test = np.array([classes.index(s["topic"]) for s in test])

    w = fit(featurize(train, vocab), y_train, len(classes), np.random.default_rng(args.seed))
    scores = featurize(test, vocab) @ w
    predicted = scores.argmax(axis=1)
    report = {"accuracy": round(float((predicted == y_test).mean()), 4), "n_vocab": len(vocab),
              "margin": round(float(np.abs(scores).max(axis=1).mean()), 5), "per_class": {}}
    for k, name in enumerate(classes):
        hit = predicted[y_test == k] == k
        report["per_class"][name] = {"n": int(len(hit)), "recall": round(float(hit.mean()), 4)}
    with open(args.report, "w") as handle:
        json.dump(report, handle, indent=2)
    print(f"accuracy: {report['accuracy']:.4f}")
    for name, row in report["per_class"].items():
        print(f"  {name:8s} n={row['n']:3d} recall={row['recall']:.3f}")
    print(f"took {time.time() - started:.2f} s")


if __name__ == "__main__":
    main()
