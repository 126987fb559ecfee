"""Synthetic text lines: one picture and one transcription for each."""
import os
import sys

import numpy as np

LETTERS = "abcdefgh"


def glyphs():
    return np.random.RandomState(0).rand(len(LETTERS), 8, 6) > 0.5


def render(text, rs):
    shapes = glyphs()
    line = np.concatenate([shapes[LETTERS.index(c)] for c in text], axis=1).astype(np.float32)
    return line + 0.8 * rs.randn(*line.shape).astype(np.float32)


def main(folder, count):
    for i in range(count):
        rs = np.random.RandomState(5000 + i)
        text = "".join(rs.choice(list(LETTERS), size=rs.randint(3, 8)))
        np.save(os.path.join(folder, f"line{i:04d}.npy"), render(text, rs))
        with open(os.path.join(folder, f"line{i:04d}.gt.txt"), "w") as f:
            f.write(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
