"""Write the logs of some nodes as a tree of folders."""
import argparse
import os
import random

QUIET = [
    "request served in {n} ms",
    "cache hit ratio {n} percent",
    "heartbeat from peer {n}",
    "compaction of level {n} finished",
    "session {n} opened",
]
LOUD = [
    "connection to peer {n} timeout after retries",
    "connection refused by peer {n}",
    "block {n} corrupt, reading replica",
    "worker {n} killed: out of memory",
]


def write_log(path, node, lines, rng):
    clock = rng.randrange(0, 60)
    trouble = 0.004
    with open(path, "w") as handle:
        for _ in range(lines):
            clock += rng.randrange(1, 12)
            trouble = min(0.05, max(0.001, trouble * rng.choice([0.97, 1.0, 1.03])))
            text = rng.choice(LOUD if rng.random() < trouble else QUIET)
            handle.write(f"{clock:07d} node{node:02d} {text.format(n=rng.randrange(1, 40))}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--lines", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for node in range(args.nodes):
        folder = os.path.join(args.out, f"rack{node % 6}")
        os.makedirs(folder, exist_ok=True)
        write_log(os.path.join(folder, f"node{node:02d}.log"), node, args.lines, rng)


if __name__ == "__main__":
    main()
