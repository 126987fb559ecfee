"""Feature rows of one chunk on standard output."""
import os
import sys

import numpy as np


def smooth(x, width=9):
    k = np.hanning(width)
    k /= k.sum()
    return np.stack([np.convolve(r, k, mode="valid") for r in x])


def main(name):
    with np.load(os.path.join("raw", name)) as z:
        x, y = smooth(z["x"]), z["y"]
    spectrum = np.abs(np.fft.rfft(x, axis=1))
    rows = []
    for i in range(len(x)):
        rows.append("%s,%.6f,%.6f,%d,%.6f,%d" % (name, x[i].mean(), x[i].std(), spectrum[i, 1:].argmax(), np.log1p(spectrum[i, 5:]).sum(), y[i]))
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
