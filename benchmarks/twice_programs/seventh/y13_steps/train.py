"""Trains a character n-gram classifier with online updates and writes its scores."""
import argparse
import json

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

ap = argparse.ArgumentParser()
ap.add_argument("--data")
ap.add_argument("--seed", type=int)
ap.add_argument("--out")
args = ap.parse_args()

with open(args.data) as f:
    rows = [line.rstrip("\n").split("\t") for line in f]
names, langs = [r[0] for r in rows], np.array([r[1] for r in rows])
held = np.array([sum(map(ord, n)) % 5 == 0 for n in names])
vec = HashingVectorizer(analyzer="char_wb", ngram_range=(1, 2), n_features=2 ** 10, alternate_sign=False)
x = vec.transform(names)
clf = SGDClassifier(loss="log_loss", random_state=args.seed, learning_rate="constant", eta0=0.2)
classes = np.unique(langs)
idx = np.flatnonzero(~held)
curve = []
for i in range(0, len(idx), 64):
    part = idx[i:i + 64]
    clf.partial_fit(x[part], langs[part], classes=classes)
    if i % 640 == 0:
        curve.append(float(clf.score(x[held], langs[held])))
result = {"accuracy": float(clf.score(x[held], langs[held])), "curve": curve, "norm": float(np.abs(clf.coef_).sum())}
with open(args.out, "w") as f:
    json.dump(result, f, indent=1)
print(f"accuracy {result['accuracy']:.4f} weights {result['norm']:.6f}")
