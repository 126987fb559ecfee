"""Set covering by rounding heuristics and a neighbourhood search.

Random set covering instances (crew pairing like) are solved by a greedy
start, then improved by destroy and repair within the time the caller grants
each heuristic.  The best covers and a table of the runs are written to disk.

Modelled on: https://github.com/NVIDIA/cuopt/issues/1069
"""
import csv
import json
import logging
import random
import time
from dataclasses import dataclass

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("cover")

SEED = 1069


@dataclass
class Instance:
    name: str
    n_rows: int
    columns: list
    costs: list

    def __post_init__(self):
        self.covering = [[] for _ in range(self.n_rows)]
        for j, rows in enumerate(self.columns):
            for i in rows:
                self.covering[i].append(j)


@dataclass
class Limits:
    heuristic_seconds: float = 1.2
    pool_size: int = 5


def make_instance(name, n_rows, n_columns, rng):
    columns, costs = [], []
    for _ in range(n_columns):
        size = rng.randrange(3, 11)
        columns.append(tuple(sorted(rng.sample(range(n_rows), size))))
        costs.append(rng.randrange(8, 30) + 3 * size)
    for i in range(n_rows):
        columns.append((i,))
        costs.append(60)
    return Instance(name, n_rows, columns, costs)


class Cover:
    """A set of chosen columns with the count how often each row is covered."""

    def __init__(self, instance):
        self.instance = instance
        self.chosen = {}
        self.count = [0] * instance.n_rows
        self.cost = 0

    def copy(self):
        other = Cover(self.instance)
        other.chosen = dict(self.chosen)
        other.count = list(self.count)
        other.cost = self.cost
        return other

    def add(self, j):
        if j in self.chosen:
            return
        self.chosen[j] = True
        self.cost += self.instance.costs[j]
        for i in self.instance.columns[j]:
            self.count[i] += 1

    def remove(self, j):
        del self.chosen[j]
        self.cost -= self.instance.costs[j]
        for i in self.instance.columns[j]:
            self.count[i] -= 1

    def prune(self):
        """Drop columns that cover nothing alone, dear ones first."""
        costs = self.instance.costs
        for j in sorted(self.chosen, key=lambda c: (-costs[c], c)):
            if all(self.count[i] > 1 for i in self.instance.columns[j]):
                self.remove(j)

    def uncovered(self):
        return [i for i, c in enumerate(self.count) if c == 0]


def repair(cover, rng, noise=0.0):
    """Cover all open rows greedily by cost per new row."""
    instance = cover.instance
    open_rows = cover.uncovered()
    rng.shuffle(open_rows)
    for i in open_rows:
        if cover.count[i]:
            continue
        best, best_score = None, None
        for j in instance.covering[i]:
            gain = sum(1 for r in instance.columns[j] if cover.count[r] == 0)
            score = instance.costs[j] / gain * (1 + noise * rng.random())
            if best_score is None or score < best_score:
                best, best_score = j, score
        cover.add(best)
    cover.prune()
    return cover


def destroy(cover, rng, share):
    chosen = sorted(cover.chosen)
    for j in rng.sample(chosen, max(1, int(share * len(chosen)))):
        cover.remove(j)
    return cover


class NeighbourhoodSearch:
    """Destroy and repair, worse covers are taken with falling probability."""

    def __init__(self, instance, limits, seed):
        self.instance = instance
        self.limits = limits
        self.rng = random.Random(seed)
        self.pool = []
        self.iterations = 0
        self.trace = []

    def remember(self, cover):
        self.pool.append((cover.cost, sorted(cover.chosen)))
        self.pool.sort()
        del self.pool[self.limits.pool_size:]

    def run(self):
        current = repair(Cover(self.instance), self.rng)
        best = current
        self.remember(best)
        deadline = time.monotonic() + self.limits.heuristic_seconds
        temperature = 0.02 * current.cost
        while time.monotonic() < deadline:  # cause
            self.iterations += 1
            share = 0.05 + 0.2 * self.rng.random()
            trial = repair(destroy(current.copy(), self.rng, share), self.rng, noise=0.3)
            worse = trial.cost - current.cost
            if worse <= 0 or self.rng.random() < 2.718281828 ** (-worse / temperature):
                current = trial
            if trial.cost < best.cost:
                best = trial
                self.remember(best)
                self.trace.append((self.iterations, best.cost))
            temperature = max(0.5, temperature * 0.999)
        self.last = current
        return best


def lower_bound(instance, rounds=40):
    """Lagrangian bound with subgradient steps."""
    weights = [min(instance.costs[j] / len(instance.columns[j]) for j in c) for c in instance.covering]
    bound, step = 0.0, 1.0
    for _ in range(rounds):
        slack = [1] * instance.n_rows
        value = sum(weights)
        for j, rows in enumerate(instance.columns):
            reduced = instance.costs[j] - sum(weights[i] for i in rows)
            if reduced < 0:
                value += reduced
                for i in rows:
                    slack[i] -= 1
        bound = max(bound, value)
        weights = [max(0.0, w + step * s) for w, s in zip(weights, slack)]
        step *= 0.93
    return bound


def main():
    start = time.time()
    rng = random.Random(SEED)
    limits = Limits()
    rows, answers = [], {}
    for k, (n_rows, n_columns) in enumerate([(400, 2500), (500, 3200), (600, 4000)]):
        instance = make_instance(f"cover{k}", n_rows, n_columns, rng)
        search = NeighbourhoodSearch(instance, limits, SEED + k)
        best = search.run()
        assert not best.uncovered()
        bound = lower_bound(instance)
        gap = (best.cost - bound) / best.cost
        print(f"{instance.name}: cost {best.cost} bound {bound:.2f} gap {100 * gap:.2f}%")
        print(f"  search ended at cost {search.last.cost} after {search.iterations} iterations")
        log.info("%s: %d improvements", instance.name, len(search.trace))
        rows.append([instance.name, best.cost, search.last.cost, f"{bound:.3f}"])
        answers[instance.name] = {"columns": sorted(best.chosen), "pool": [c for c, _ in search.pool]}
    with open("runs.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["instance", "best", "last", "bound"])
        writer.writerows(rows)
    with open("covers.json", "w") as handle:
        json.dump(answers, handle)
    log.info("finished in %.1f s", time.time() - start)


if __name__ == "__main__":
    main()
