"""Sliding-window quality trimming of one plate; records go to standard output."""
import sys
import time

import numpy as np


def records(path):
    with open(path) as f:
        while head := f.readline().rstrip("\n"):
            seq, _, qual = (f.readline().rstrip("\n") for _ in range(3))
            yield head[1:], seq, np.frombuffer(qual.encode(), np.uint8).astype(int) - 33


def trim(seq, qual, window, threshold):
    mean = np.convolve(qual, np.ones(window) / window, mode="valid")
    low = np.flatnonzero(mean < threshold)
    return seq if len(low) == 0 else seq[: low[0] + window // 2]


def emit(lines):
    sys.stdout.write("".join(lines))
    sys.stdout.flush()
    return len(lines)


def main(path, window="20", threshold="22", min_len="90", block=20):
    t0, lines, kept = time.time(), [], 0
    for head, seq, qual in records(path):
        s = trim(seq, qual, int(window), float(threshold))
        if len(s) >= int(min_len):
            name, org = head.split(" ")
            lines.append(f"{name}\t{org.split('=')[1]}\t{s}\n")
        if len(lines) == block:
            kept += emit(lines)
            lines = []
    kept += emit(lines)
    print(f"{path}: kept {kept} reads ({kept / (time.time() - t0):.0f}/s)", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
