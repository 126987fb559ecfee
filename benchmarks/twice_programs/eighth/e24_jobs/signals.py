"""Writes the raw chunks, every chunk holds a number of short signals."""
import argparse
import os

import numpy as np


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--chunks", type=int)
    ap.add_argument("--out")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for c in range(a.chunks):
        rs = np.random.RandomState(300 + c)
        label = rs.randint(0, 2, 40)
        t = np.arange(400)
        x = np.sin(t[None] * (0.03 + 0.004 * label[:, None])) * rs.uniform(0.8, 1.2, (40, 1)) + 0.8 * rs.randn(40, 400)
        np.savez(os.path.join(a.out, "chunk%02d.npz" % c), x=x + 0.15 * label[:, None], y=label)


if __name__ == "__main__":
    main()
