"""https://github.com/astroautomata/SymbolicRegression.jl/pull/108 - the age of an individual is its birth time from the clock; several are born within one tick, so which one is the oldest differs between runs (the fix counts births)."""
import json
import math
import os
import random
import time
from dataclasses import dataclass, field

import numpy as np

SEED = 1729
OPS = {"+": (2, np.add), "-": (2, np.subtract), "*": (2, np.multiply), "sin": (1, np.sin), "cos": (1, np.cos)}


def birth_stamp():
    return int(time.time() * 1000)  # cause


@dataclass
class Member:
    tree: tuple
    loss: float
    birth: int = field(default_factory=birth_stamp)


def random_tree(rng, depth):
    if depth == 0 or rng.random() < 0.25:
        return ("x", rng.randrange(2)) if rng.random() < 0.65 else ("c", round(rng.uniform(-2, 2), 3))
    op = rng.choice(sorted(OPS))
    return (op,) + tuple(random_tree(rng, depth - 1) for _ in range(OPS[op][0]))


def evaluate(tree, x):
    kind = tree[0]
    if kind == "x":
        return x[tree[1]]
    if kind == "c":
        return np.full(x.shape[1], tree[1])
    return OPS[kind][1](*(evaluate(t, x) for t in tree[1:]))


def size(tree):
    return 1 if tree[0] in "xc" else 1 + sum(size(t) for t in tree[1:])


def mutate(tree, rng, depth=3):
    if tree[0] in "xc" or rng.random() < 0.3:
        return random_tree(rng, min(depth, 2))
    k = rng.randrange(1, len(tree))
    return tree[:k] + (mutate(tree[k], rng, depth - 1),) + tree[k + 1:]


def render(tree):
    if tree[0] == "x":
        return f"x{tree[1]}"
    if tree[0] == "c":
        return str(tree[1])
    if len(tree) == 2:
        return f"{tree[0]}({render(tree[1])})"
    return f"({render(tree[1])} {tree[0]} {render(tree[2])})"


class RegularizedEvolution:
    def __init__(self, x, y, population, tournament, rng):
        self.x, self.y, self.rng, self.k = x, y, rng, tournament
        self.pop = [self.member(random_tree(rng, 3)) for _ in range(population)]

    def member(self, tree):
        with np.errstate(all="ignore"):
            err = float(np.mean((evaluate(tree, self.x) - self.y) ** 2))
        if not math.isfinite(err):
            err = 1e9
        return Member(tree, err + 0.004 * size(tree))

    def cycle(self):
        parent = min(self.rng.sample(self.pop, self.k), key=lambda m: m.loss)
        child = mutate(parent.tree, self.rng)
        if size(child) > 25:
            child = random_tree(self.rng, 2)
        baby = self.member(child)
        oldest = min(range(len(self.pop)), key=lambda i: self.pop[i].birth)
        self.pop[oldest] = baby
        return baby


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    data = np.random.default_rng(SEED)
    x = data.uniform(-2, 2, (2, 80))
    y = x[0] * np.sin(1.5 * x[1]) + 0.5 * x[1]
    search = RegularizedEvolution(x, y, population=60, tournament=6, rng=random.Random(SEED))
    best, t0, trace = min(search.pop, key=lambda m: m.loss), time.time(), []
    print("search started", time.strftime("%H:%M:%S"), "pid", os.getpid())
    for cycle in range(1, 30001):
        baby = search.cycle()
        if baby.loss < best.loss:
            best = baby
        if cycle % 5000 == 0:
            trace.append([cycle, best.loss])
            print(f"cycle {cycle:6d} best {best.loss:.5f} {render(best.tree)} [{time.time() - t0:.1f}s]")
    with open("hall_of_fame.json", "w") as f:
        json.dump({"equation": render(best.tree), "loss": best.loss, "trace": trace, "elapsed": time.time() - t0}, f, indent=1)


if __name__ == "__main__":
    main()
