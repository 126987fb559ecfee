"""https://github.com/mlotinga/sottek-hearing-model/issues/9: np.empty, and not all of it is filled."""

import json

import numpy as np


def names(n):
    return [f"band-{i}" for i in sorted(range(n), key=str)]


def signals(n, length):
    rng = np.random.default_rng(4)
    t = np.linspace(0, 1, length)
    return [np.sin(2 * np.pi * (3 + i % 5) * t) + 0.1 * rng.normal(size=length) for i in range(n)]


def bands(signal, count):
    power = np.abs(np.fft.rfft(signal)) ** 2
    edges = np.geomspace(1, len(power) - 1, count + 1).astype(int)
    out = np.empty(count, dtype=np.int64)  # cause
    for i, (low, high) in enumerate(zip(edges, edges[1:])):
        if high > low:
            out[i] = int(1000 * power[low:high].mean())
    return out


def main():
    table, seen = [], set()
    for signal in signals(24, 4096):
        labels = tuple(names(300))
        seen.update(labels)
        del labels
        table.append(bands(signal, 300))
    table = np.array(table)
    profile = np.remainder(table, 100_003).mean(0)
    distance = np.abs(table - np.median(table, axis=0)).sum(1)
    print("profile", profile.tolist())
    json.dump(distance.tolist(), open("distances.json", "w"))


main()
