"""https://github.com/jkitchin/discopt/issues/1187 : deterministic=True does not make the solve reproducible: the root heuristic gets a
budget that is a fraction of what is left on the wall clock, so the incumbent depends on the speed of the machine."""
import argparse
import json
import random
from time import perf_counter, strftime

import numpy as np

BUDGET_FRAC = 0.10
BUDGET_CAP_S = 2.0
START_TEMP = 40.0


def instance(n=220, m=5, seed=4):
    rs = np.random.RandomState(seed)
    weight = rs.randint(5, 60, (m, n))
    profit = weight.sum(0) + rs.randint(0, 90, n)
    capacity = (weight.sum(1) * 0.4).astype(int)
    quad = np.triu(rs.randint(-12, 25, (n, n)) * (rs.rand(n, n) < 0.15), 1)
    return profit, quad, weight, capacity


class Problem:
    def __init__(self, *parts):
        self.profit, self.quad, self.weight, self.capacity = parts
        self.n = len(self.profit)
        self.sym = self.quad + self.quad.T

    def value(self, x):
        return float(self.profit @ x + x @ self.quad @ x)

    def feasible(self, x):
        return bool((self.weight @ x <= self.capacity).all())

    def first_fit(self):
        x = np.zeros(self.n, int)
        for i in range(self.n):
            x[i] = 1
            if not self.feasible(x):
                x[i] = 0
        return x


class Incumbent:
    def __init__(self):
        self.x, self.obj, self.history = None, -np.inf, []

    def offer(self, x, obj, source):
        if obj > self.obj:
            self.x, self.obj = x.copy(), obj
            self.history.append((source, obj))


def primal_heuristic(p, x, rng, budget, incumbent):
    """Large neighbourhood search around the rounded relaxation."""
    begin = perf_counter()
    cur, obj = x.copy(), p.value(x)
    while (spent := perf_counter() - begin) < budget:  # cause
        temp = max(0.5, START_TEMP * (1 - spent / budget))
        y = cur.copy()
        y[rng.choice(np.flatnonzero(cur).tolist())] = 0
        for i in rng.sample(np.flatnonzero(1 - cur).tolist(), rng.randint(1, 2)):
            y[i] = 1
        if p.feasible(y):
            v = p.value(y)
            if v > obj or rng.random() < np.exp((v - obj) / temp):
                cur, obj = y, v
                incumbent.offer(cur, obj, "heuristic")


def tree_search(p, rng, incumbent, nodes):
    """Depth first search with random branching, limited by nodes."""
    stack = [(incumbent.x.copy(), frozenset())]
    done = 0
    while stack and done < nodes:
        x, fixed = stack.pop()
        done += 1
        free = [i for i in range(p.n) if i not in fixed]
        if not free:
            continue
        gain = [(1 - 2 * x[i]) * (p.profit[i] + p.sym[i] @ x) for i in free]
        i = free[int(np.argmax(gain))] if rng.random() < 0.7 else rng.choice(free)
        y = x.copy()
        y[i] ^= 1
        while not p.feasible(y):
            drop = [j for j in range(p.n) if y[j] and j != i]
            y[rng.choice(drop)] = 0
        incumbent.offer(y, p.value(y), "tree")
        stack.append((x, fixed | {i}))
        stack.append((y, fixed | {i}))
    return done


def solve(p, seed, time_limit, nodes, deterministic=True):
    rng = random.Random(seed)
    start = perf_counter()
    incumbent = Incumbent()
    x = p.first_fit()
    incumbent.offer(x, p.value(x), "first fit")
    budget = max(0.2, min(BUDGET_FRAC * (time_limit - (perf_counter() - start)), BUDGET_CAP_S))  # cause
    primal_heuristic(p, x, rng, budget, incumbent)
    done = tree_search(p, rng, incumbent, nodes)
    return incumbent, done, perf_counter() - start


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--time-limit", type=float, default=12.0)
    ap.add_argument("--nodes", type=int, default=400)
    args = ap.parse_args()
    rows = []
    for k in range(3):
        p = Problem(*instance(seed=k))
        inc, done, wall = solve(p, 17, args.time_limit, args.nodes)
        print(strftime("%H:%M:%S"), "instance", k, "objective", inc.obj, "nodes", done, "wall %.2f s" % wall)
        rows.append({"instance": k, "objective": inc.obj, "nodes": done, "x": inc.x.tolist(), "improvements": inc.history})
    with open("solutions.json", "w") as f:
        json.dump(rows, f)


if __name__ == "__main__":
    main()
