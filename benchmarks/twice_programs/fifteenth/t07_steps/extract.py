"""Compute features of the rows of one shard, print them to standard output."""
import math
import sys


def features(values):
    a, b, c, d, e = values
    smooth = 0.0
    for k in range(1, 120):
        smooth += math.sin(k * a) / k + math.cos(k * b) / (k * k)
    return [a, b, c, d, c * d, a * b, e, smooth]


def main(path):
    lines = []
    with open(path) as fh:
        for line in fh:
            key, label, *vals = line.rstrip("\n").split("\t")
            feats = features([float(v) for v in vals])
            lines.append("\t".join([key, label] + [f"{f:.6f}" for f in feats]) + "\n")
    sys.stdout.write("".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
