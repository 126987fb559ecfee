"""Writes the tokens of a made-up text; started as a program of its own."""

import sys
import time

import numpy as np


def corrupt(tokens, rate, seed):
    noise = np.random.default_rng(seed)
    places = noise.random(len(tokens)) < rate
    return np.where(places, noise.integers(0, 32, len(tokens)), tokens)


def main():
    text = b"the quick brown fox jumps over the lazy dog " * 40
    tokens = np.frombuffer(text, dtype=np.uint8).astype(np.int64) % 32
    seed = 7
    if sys.argv[2] == "noisy":
        seed = time.time_ns()  # cause: prepare
    np.save(sys.argv[1], corrupt(tokens, 0.1, seed))


if __name__ == "__main__":
    main()
