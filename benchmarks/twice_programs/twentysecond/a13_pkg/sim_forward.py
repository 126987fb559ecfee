"""Simulate Hi-C read pairs: two ends of ligated fragments of one genome."""
import json
import sys

import numpy as np

RANDOM_STATE = None
READ_LENGTH = 40
INTER_GENOME = 0.06


class EmpiricalDistribution:
    """Separations of the two ends: mostly near, sometimes anywhere."""

    def __init__(self, length, shape=4e-4):
        self.grid = np.arange(1, length)
        weights = shape * (1 - shape) ** self.grid + 0.1 / length
        self.cdf = np.cumsum(weights) / weights.sum()

    def rand(self):
        u = np.random.uniform()  # cause
        return int(self.grid[min(np.searchsorted(self.cdf, u), len(self.grid) - 1)])


class Genome:
    def __init__(self, record):
        self.name = record["name"]
        self.length = record["length"]
        self.sequence = record["sequence"]
        self.abundance = record["abundance"]
        self.separation = EmpiricalDistribution(self.length)

    def position(self):
        return int(RANDOM_STATE.randint(0, self.length))

    def read(self, position):
        ring = self.sequence[position:position + READ_LENGTH]
        return ring + self.sequence[:READ_LENGTH - len(ring)]


class Community:
    def __init__(self, records):
        self.genomes = [Genome(r) for r in records]
        self.weights = np.array([g.abundance for g in self.genomes])
        self.weights /= self.weights.sum()

    def pick(self):
        return self.genomes[RANDOM_STATE.choice(len(self.genomes), p=self.weights)]

    def pair(self):
        first = self.pick()
        start = first.position()
        if RANDOM_STATE.uniform() < INTER_GENOME:
            second = self.pick()
            return first, start, second, second.position()
        offset = first.separation.rand()
        sign = 1 if RANDOM_STATE.uniform() < 0.5 else -1
        return first, start, first, (start + sign * offset) % first.length


def main():
    global RANDOM_STATE
    source, seed, count, target = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    RANDOM_STATE = np.random.RandomState(seed)
    with open(source) as fh:
        community = Community(json.load(fh))
    inter = 0
    with open(target, "w") as out:
        for i in range(count):
            a, x, b, y = community.pair()
            inter += a is not b
            out.write(f"r{i}\t{a.name}\t{x}\t{a.read(x)}\t{b.name}\t{y}\t{b.read(y)}\n")
    print(f"pairs {count}, between genomes {inter}")


if __name__ == "__main__":
    main()
