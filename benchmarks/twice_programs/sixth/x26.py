"""https://github.com/mlotinga/sottek-hearing-model/issues/9 - accumulators are made with numpy.empty(), so whatever the memory held before is added to the results."""
import json
import os
import random
import time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

SEED = 900
RATE = 8000
BANDS = 12
WORDS = 400


def make_clip(rng, kind):
    t = np.arange(RATE // 2) / RATE
    base = (180, 260, 410)[kind] * rng.uniform(0.9, 1.1)
    tone = sum(np.sin(2 * np.pi * base * h * t + rng.uniform(0, 6.28)) / h for h in range(1, 5))
    wobble = 1 + 0.4 * np.sin(2 * np.pi * (3 + 2 * kind) * t)
    return tone * wobble + rng.normal(0, 1.2, len(t))


def frames(signal, width=256, hop=64):
    n = 1 + (len(signal) - width) // hop
    idx = np.arange(width)[None, :] + hop * np.arange(n)[:, None]
    return signal[idx] * np.hanning(width)


def band_energies(signal):
    power = np.abs(np.fft.rfft(frames(signal), axis=1)) ** 2
    edges = np.unique(np.geomspace(2, power.shape[1], BANDS + 1).astype(int))
    return np.log(np.add.reduceat(power, edges[:-1], axis=1) + 1e-6)


class Codebook:
    def __init__(self, words):
        self.model = KMeans(words, n_init=1, max_iter=10, random_state=SEED)

    def fit(self, feats):
        self.model.fit(feats)
        return self

    def histogram(self, feats):
        codes = self.model.predict(feats)
        counts = np.empty(WORDS, dtype=np.int64)  # cause
        for code in codes:
            counts[code] += 1
        return counts


def describe(hist):
    return np.log1p(np.abs(hist.astype(float)))


def build_set(n, seed):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n)
    return [band_energies(make_clip(rng, k)) for k in kinds], kinds


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    t0 = time.time()
    train, y = build_set(150, 1)
    test, yt = build_set(60, 2)
    book = Codebook(WORDS).fit(np.concatenate(train)[::4])
    print(f"codebook of {WORDS} words after {time.time() - t0:.2f}s, pid {os.getpid()}")
    x = np.array([describe(book.histogram(f)) for f in train])
    xt = np.array([describe(book.histogram(f)) for f in test])
    scaler = StandardScaler().fit(x)
    clf = LogisticRegression(C=0.1, max_iter=300).fit(scaler.transform(x), y)
    proba = clf.predict_proba(scaler.transform(xt))
    acc = float((proba.argmax(1) == yt).mean())
    nll = float(-np.mean(np.log(proba[np.arange(len(yt)), yt] + 1e-12)))
    print(f"accuracy {acc:.4f} nll {nll:.6f} ({time.strftime('%T')})")
    with open("bag_of_frames.json", "w") as f:
        json.dump({"accuracy": acc, "nll": nll, "coef_norm": float(np.linalg.norm(clf.coef_)),
                   "elapsed": time.time() - t0}, f)


if __name__ == "__main__":
    main()
