"""Predict the test methods and report precision, recall and F1 of name parts."""
import argparse
import json

import numpy as np

from reader import Reader


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--load", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--metrics", required=True)
    args = ap.parse_args()
    reader = Reader(args.data)
    names = list(reader.targets)
    model = np.load(args.load)
    tp = fp = fn = 0
    logloss, n = 0.0, 0
    with open(args.out, "w") as fh:
        for name, ids in reader.examples(args.data + ".test.raw.txt"):
            score = model["emb"][ids].mean(axis=0) @ model["out"] + model["bias"]
            prob = 1.0 / (1.0 + np.exp(-score))
            guess = [names[k] for k in np.argsort(-prob, kind="stable")[:2]]
            truth = name.split("|")
            tp += len(set(guess) & set(truth))
            fp += len(set(guess) - set(truth))
            fn += len(set(truth) - set(guess))
            logloss -= sum(np.log(prob[reader.targets[t]] + 1e-9) for t in truth)
            n += 1
            fh.write(f"{name} -> {'|'.join(guess)} {prob.max():.6f}\n")
    precision, recall = tp / (tp + fp), tp / (tp + fn)
    result = {"precision": precision, "recall": recall, "f1": 2 * precision * recall / (precision + recall),
              "logloss": logloss / n, "examples": n}
    with open(args.metrics, "w") as fh:
        json.dump(result, fh, indent=2)
    print(" ".join(f"{k} {v:.6f}" for k, v in result.items()))


if __name__ == "__main__":
    main()
