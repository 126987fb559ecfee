import json
import os
import sys

import numpy as np

from generate import PLACES


def features(words):
    v = np.zeros(60, int)
    for w in words:
        v[int(w[1:])] += 1
    return v.tolist()


def main():
    lines = []
    with open(sys.argv[1]) as f:
        for line in f:
            place, text = line.rstrip("\n").split("\t")
            lines.append(json.dumps({"y": PLACES.index(place), "x": features(text.split())}))
    os.write(1, ("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
