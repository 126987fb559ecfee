"""Iterated local search for capacitated vehicle routing with time windows off.

Modelled on https://github.com/PyVRP/PyVRP/issues/946

A clustered instance is generated, a savings start is improved by ruin and
recreate with relocate and 2-opt moves, and worse solutions are accepted by a
threshold that shrinks with the remaining budget of the stopping criterion.
"""
import json
import logging
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

log = logging.getLogger("vrp")


@dataclass
class Instance:
    xy: np.ndarray
    demand: np.ndarray
    capacity: int
    dist: np.ndarray = field(init=False)

    def __post_init__(self):
        diff = self.xy[:, None, :] - self.xy[None, :, :]
        self.dist = np.rint(np.sqrt((diff ** 2).sum(-1)) * 10).astype(int)
        self.near = np.argsort(self.dist, axis=1, kind="stable")

    @property
    def clients(self):
        return range(1, len(self.xy))


def make_instance(n, seed):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(100, 900, size=(6, 2))
    pick = rng.integers(0, 6, n)
    xy = np.where(rng.random((n, 1)) < 0.6, centres[pick] + rng.normal(0, 45, (n, 2)),
                  rng.uniform(0, 1000, (n, 2)))
    xy = np.vstack([[500.0, 500.0], np.clip(xy, 0, 1000)])
    demand = np.concatenate([[0], rng.integers(1, 36, n)])
    return Instance(xy.round(1), demand, 180)


class MaxRuntime:
    def __init__(self, max_runtime):
        self.max_runtime = max_runtime
        self.start = None

    def _elapsed(self):
        now = time.perf_counter()  # cause
        if self.start is None:
            self.start = now
        return now - self.start

    def __call__(self, best_cost):
        return self._elapsed() >= self.max_runtime

    def fraction_remaining(self):
        return max(0.0, 1.0 - self._elapsed() / self.max_runtime)


class MaxIterations:
    def __init__(self, max_iterations):
        self.max_iterations = max_iterations
        self.count = 0

    def __call__(self, best_cost):
        self.count += 1
        return self.count > self.max_iterations

    def fraction_remaining(self):
        return max(0.0, 1.0 - self.count / self.max_iterations)


class Acceptance:
    """Moving average of recent costs blended with the best one."""

    def __init__(self, initial_weight=1.0, history=60):
        self.weight = initial_weight
        self.recent = np.zeros(history)
        self.seen = 0

    def __call__(self, best, candidate, fraction):
        self.recent[self.seen % len(self.recent)] = candidate
        self.seen += 1
        window = self.recent[: min(self.seen, len(self.recent))]
        weight = self.weight * fraction
        threshold = (1 - weight) * window.min() + weight * window.mean()
        return candidate <= threshold


def route_cost(inst, route):
    if not route:
        return 0
    d = inst.dist
    return int(d[0, route[0]] + d[route[-1], 0]
               + sum(d[a, b] for a, b in zip(route[:-1], route[1:])))


def cost(inst, routes):
    return sum(route_cost(inst, r) for r in routes)


def savings(inst):
    routes = {c: [c] for c in inst.clients}
    load = {c: int(inst.demand[c]) for c in inst.clients}
    owner = {c: c for c in inst.clients}
    d = inst.dist
    pairs = sorted(((int(d[0, i] + d[0, j] - d[i, j]), i, j)
                    for i in inst.clients for j in inst.near[i][1:26] if j > i and j != 0),
                   key=lambda t: (-t[0], t[1], t[2]))
    for _, i, j in pairs:
        a, b = owner[i], owner[j]
        if a == b or load[a] + load[b] > inst.capacity:
            continue
        ra, rb = routes[a], routes[b]
        if ra[0] == i:
            ra = ra[::-1]
        if rb[-1] == j:
            rb = rb[::-1]
        if ra[-1] != i or rb[0] != j:
            continue
        routes[a] = ra + rb
        load[a] += load[b]
        for c in rb:
            owner[c] = a
        del routes[b], load[b]
    return list(routes.values())


def two_opt(inst, route):
    d = inst.dist
    improved = True
    while improved and len(route) > 2:
        improved = False
        tour = [0] + route + [0]
        for i in range(1, len(tour) - 2):
            for j in range(i + 1, len(tour) - 1):
                delta = (d[tour[i - 1], tour[j]] + d[tour[i], tour[j + 1]]
                         - d[tour[i - 1], tour[i]] - d[tour[j], tour[j + 1]])
                if delta < 0:
                    tour[i:j + 1] = tour[i:j + 1][::-1]
                    improved = True
        route = tour[1:-1]
    return route


def ruin(inst, routes, rng):
    size = int(rng.integers(4, 14))
    seed = int(rng.integers(1, len(inst.xy)))
    removed = [int(c) for c in inst.near[seed] if c != 0 and rng.random() < 0.75][:size]
    gone = set(removed)
    kept = [[c for c in r if c not in gone] for r in routes]
    touched = [len(k) != len(r) for k, r in zip(kept, routes)]
    pairs = [(k, t) for k, t in zip(kept, touched) if k]
    return [k for k, _ in pairs], [t for _, t in pairs], removed


def recreate(inst, routes, touched, removed, rng, blink=0.02):
    d = inst.dist
    loads = [int(inst.demand[r].sum()) for r in routes]
    order = rng.permutation(len(removed)) if rng.random() < 0.5 else \
        np.argsort(-inst.demand[removed], kind="stable")
    for c in (removed[k] for k in order):
        best = (2 * int(d[0, c]), None, None)
        close = set(int(v) for v in inst.near[c][1:21])
        for r, route in enumerate(routes):
            if loads[r] + inst.demand[c] > inst.capacity or not close.intersection(route):
                continue
            prev = 0
            for pos in range(len(route) + 1):
                nxt = route[pos] if pos < len(route) else 0
                delta = int(d[prev, c] + d[c, nxt] - d[prev, nxt])
                if delta < best[0] and rng.random() >= blink:
                    best = (delta, r, pos)
                prev = nxt
        if best[1] is None:
            routes.append([c])
            touched.append(False)
            loads.append(int(inst.demand[c]))
        else:
            routes[best[1]].insert(best[2], c)
            touched[best[1]] = True
            loads[best[1]] += int(inst.demand[c])
    return [two_opt(inst, r) if t else r for r, t in zip(routes, touched)]


def solve(inst, stop, seed):
    rng = np.random.default_rng(seed)
    current = [two_opt(inst, r) for r in savings(inst)]
    current_cost = cost(inst, current)
    best, best_cost = current, current_cost
    accept = Acceptance()
    trace, iters = [(0, best_cost)], 0
    while not stop(best_cost):
        iters += 1
        kept, touched, removed = ruin(inst, current, rng)
        cand = recreate(inst, kept, touched, removed, rng)
        cand_cost = cost(inst, cand)
        if cand_cost < best_cost:
            best, best_cost = cand, cand_cost
            trace.append((iters, best_cost))
        if accept(best_cost, cand_cost, stop.fraction_remaining()):
            current, current_cost = cand, cand_cost
        if iters % 500 == 0:
            log.info("iteration %5d  current %d  best %d  (%2.0f %% left)", iters, current_cost,
                     best_cost, 100 * stop.fraction_remaining())
    return best, best_cost, trace, iters


def check(inst, routes):
    visited = sorted(c for r in routes for c in r)
    assert visited == list(inst.clients)
    assert all(inst.demand[r].sum() <= inst.capacity for r in routes)


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s %(levelname)s %(message)s")
    out = Path("solutions")
    out.mkdir(exist_ok=True)
    inst = make_instance(110, seed=533)
    log.info("%d clients, capacity %d, writing to %s", len(inst.xy) - 1, inst.capacity,
             out.resolve())
    stop = MaxRuntime(3.5)  # cause
    best, best_cost, trace, iters = solve(inst, stop, seed=946)
    check(inst, best)
    best = sorted(best)
    with open(out / "routes.txt", "w") as fh:
        for k, route in enumerate(best, 1):
            fh.write(f"Route #{k}: {' '.join(map(str, route))}\n")
        fh.write(f"Cost {best_cost}\n")
    (out / "trace.json").write_text(json.dumps(
        {"best": best_cost, "routes": len(best), "improvements": trace}))
    loads = [int(inst.demand[r].sum()) for r in best]
    print(f"best cost {best_cost} with {len(best)} routes, "
          f"mean load {np.mean(loads):.2f}, {len(trace) - 1} improvements, {iters} iterations")


if __name__ == "__main__":
    main()
