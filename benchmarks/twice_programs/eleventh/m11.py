"""Large-neighbourhood search for a multi-dimensional knapsack.

Modelled on https://github.com/jkitchin/discopt/issues/912
Solves a generated instance with a greedy root heuristic, local search and repair.
"""
import argparse
import csv
import json
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

log = logging.getLogger("mknap")


@dataclass
class Options:
    seed: int = 3
    items: int = 900
    resources: int = 10
    tightness: float = 0.35
    time_limit: float = 1.5
    destroy_share: float = 0.03
    swap_trials: int = 25
    slack: float = 0.0008
    out_dir: str = "solve"


class Instance:
    def __init__(self, options):
        rng = np.random.default_rng(options.seed)
        self.weights = rng.integers(5, 100, size=(options.resources, options.items)).astype(float)
        self.profit = self.weights.mean(axis=0) + rng.integers(1, 50, size=options.items)
        self.capacity = np.floor(options.tightness * self.weights.sum(axis=1))
        self.items = options.items

    def feasible(self, chosen):
        return bool((self.weights[:, chosen].sum(axis=1) <= self.capacity).all())

    def value(self, chosen):
        return float(self.profit[chosen].sum())


class State:
    def __init__(self, instance, chosen):
        self.instance = instance
        self.chosen = chosen.copy()
        self.used = instance.weights[:, self.chosen].sum(axis=1)
        self.value = instance.value(self.chosen)

    def copy(self):
        other = State.__new__(State)
        other.instance = self.instance
        other.chosen = self.chosen.copy()
        other.used = self.used.copy()
        other.value = self.value
        return other

    def fits(self, item):
        return bool((self.used + self.instance.weights[:, item] <= self.instance.capacity).all())

    def add(self, item):
        self.chosen[item] = True
        self.used += self.instance.weights[:, item]
        self.value += self.instance.profit[item]

    def drop(self, item):
        self.chosen[item] = False
        self.used -= self.instance.weights[:, item]
        self.value -= self.instance.profit[item]


def greedy_root(instance):
    state = State(instance, np.zeros(instance.items, dtype=bool))
    ratio = instance.profit / (instance.weights / instance.capacity[:, None]).sum(axis=0)
    for item in np.argsort(-ratio, kind="stable"):
        if state.fits(item):
            state.add(item)
    return state


def destroy(state, rng, share):
    inside = np.flatnonzero(state.chosen)
    k = max(2, int(share * len(inside)))
    for item in rng.choice(inside, size=k, replace=False):
        state.drop(item)


def repair(state, rng):
    instance = state.instance
    slack = np.maximum(instance.capacity - state.used, 1.0)
    pressure = (instance.weights / slack[:, None]).sum(axis=0)
    score = instance.profit / pressure * rng.uniform(0.9, 1.1, size=instance.items)
    for item in np.argsort(-score, kind="stable"):
        if not state.chosen[item] and state.fits(item):
            state.add(item)


def swap_search(state, rng, trials):
    inside = np.flatnonzero(state.chosen)
    outside = np.flatnonzero(~state.chosen)
    gained = 0
    for _ in range(trials):
        a, b = rng.choice(inside), rng.choice(outside)
        if state.instance.profit[b] <= state.instance.profit[a] or not state.chosen[a] or state.chosen[b]:
            continue
        state.drop(a)
        if state.fits(b):
            state.add(b)
            gained += 1
        else:
            state.add(a)
    return gained


class Solver:
    def __init__(self, instance, options):
        self.instance = instance
        self.options = options
        self.rng = np.random.default_rng(options.seed + 1000)
        self.trace = []
        self.nodes = 0

    def solve(self):
        started = time.monotonic()
        incumbent = greedy_root(self.instance)
        current = incumbent.copy()
        self.trace.append((0, incumbent.value))
        log.info("root heuristic: %.1f", incumbent.value)
        while True:
            elapsed = time.monotonic() - started  # cause
            if elapsed >= self.options.time_limit:
                break
            slack = self.options.slack * (1.0 - elapsed / self.options.time_limit)
            self.nodes += 1
            candidate = current.copy()
            destroy(candidate, self.rng, self.options.destroy_share)
            repair(candidate, self.rng)
            swap_search(candidate, self.rng, self.options.swap_trials)
            if candidate.value > current.value - slack * incumbent.value * self.rng.random():
                current = candidate
            if candidate.value > incumbent.value:
                incumbent = candidate.copy()
                self.trace.append((self.nodes, incumbent.value))
        log.info("search stopped after %.2fs", time.monotonic() - started)
        return incumbent


def surrogate_bound(instance):
    weight = (instance.weights / instance.capacity[:, None]).sum(axis=0)
    room = float(instance.weights.shape[0])
    total = 0.0
    for item in np.argsort(-instance.profit / weight, kind="stable"):
        if weight[item] <= room:
            room -= weight[item]
            total += instance.profit[item]
        else:
            total += instance.profit[item] * room / weight[item]
            break
    return float(total)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=Options.seed)
    parser.add_argument("--items", type=int, default=Options.items)
    parser.add_argument("--time-limit", type=float, default=Options.time_limit)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options = Options(seed=args.seed, items=args.items, time_limit=args.time_limit)

    instance = Instance(options)
    solver = Solver(instance, options)
    best = solver.solve()
    assert instance.feasible(best.chosen)
    bound = surrogate_bound(instance)
    gap = (bound - best.value) / bound

    out = Path(options.out_dir)
    out.mkdir(exist_ok=True)
    (out / "options.json").write_text(json.dumps(asdict(options), indent=1))
    with open(out / "trace.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["node", "incumbent"])
        writer.writerows((node, f"{value:.3f}") for node, value in solver.trace)
    solution = {"objective": round(best.value, 3), "bound": round(bound, 3), "nodes": solver.nodes,
                "items": np.flatnonzero(best.chosen).tolist()}
    (out / "solution.json").write_text(json.dumps(solution))

    print(f"objective {best.value:.3f}")
    print(f"bound     {bound:.3f}")
    print(f"gap       {100 * gap:.4f}%")
    print(f"nodes     {solver.nodes}, improvements {len(solver.trace) - 1}")


if __name__ == "__main__":
    main()
