"""Modelled on https://github.com/google/or-tools/issues/4195
Plans the weekly tours of a parts supplier with a neighbourhood search and writes the tour plan.
"""
import argparse
import json
import logging
import math
import random
import time
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("tours")


@dataclass
class Settings:
    n_customers: int = 420
    n_vehicles: int = 14
    capacity: int = 340
    seed: int = 77
    time_limit: float = 2.0
    start_temp: float = 12.0
    cooling: float = 0.99998


@dataclass(frozen=True)
class Customer:
    cid: int
    x: float
    y: float
    demand: int


class Instance:
    def __init__(self, customers, depot=(50.0, 50.0)):
        self.customers = customers
        self.depot = depot
        pts = [depot] + [(c.x, c.y) for c in customers]
        self.dist = [[math.hypot(ax - bx, ay - by) for bx, by in pts] for ax, ay in pts]
        self.demand = [0] + [c.demand for c in customers]

    @property
    def n(self):
        return len(self.customers)


def make_instance(cfg):
    rnd = random.Random(cfg.seed)
    towns = [(rnd.uniform(10, 90), rnd.uniform(10, 90)) for _ in range(7)]
    customers = []
    for i in range(1, cfg.n_customers + 1):
        tx, ty = rnd.choice(towns)
        customers.append(
            Customer(i, round(rnd.gauss(tx, 9), 2), round(rnd.gauss(ty, 9), 2), rnd.randint(4, 16))
        )
    return Instance(customers)


class Plan:
    """A list of tours, each a list of customer numbers without the depot."""

    def __init__(self, inst, tours):
        self.inst = inst
        self.tours = tours

    def copy(self):
        return Plan(self.inst, [t[:] for t in self.tours])

    def tour_cost(self, tour):
        d = self.inst.dist
        cost, last = 0.0, 0
        for c in tour:
            cost += d[last][c]
            last = c
        return cost + d[last][0]

    def load(self, tour):
        return sum(self.inst.demand[c] for c in tour)

    def cost(self):
        return sum(self.tour_cost(t) for t in self.tours)


def sweep(inst, cfg):
    """Start plan: customers sorted by their angle seen from the depot."""
    dx, dy = inst.depot
    order = sorted(inst.customers, key=lambda c: (math.atan2(c.y - dy, c.x - dx), c.cid))
    tours, load = [[]], 0
    target = sum(inst.demand) / cfg.n_vehicles
    for c in order:
        if len(tours) < cfg.n_vehicles and load + c.demand > target * 1.02:
            tours.append([])
            load = 0
        tours[-1].append(c.cid)
        load += c.demand
    return Plan(inst, tours)


class NeighbourhoodSearch:
    def __init__(self, inst, cfg):
        self.inst, self.cfg = inst, cfg
        self.rnd = random.Random(cfg.seed + 1)
        self.trace = []

    def relocate(self, plan):
        rnd, d = self.rnd, self.inst.dist
        a = rnd.randrange(len(plan.tours))
        b = rnd.randrange(len(plan.tours))
        if not plan.tours[a]:
            return None
        i = rnd.randrange(len(plan.tours[a]))
        c = plan.tours[a][i]
        if a != b and plan.load(plan.tours[b]) + self.inst.demand[c] > self.cfg.capacity:
            return None
        ta = plan.tours[a][:i] + plan.tours[a][i + 1 :]
        base = ta if a == b else plan.tours[b]
        j = rnd.randint(0, len(base))
        tb = base[:j] + [c] + base[j:]
        return {a: ta, b: tb} if a != b else {a: tb}

    def reverse(self, plan):
        a = self.rnd.randrange(len(plan.tours))
        t = plan.tours[a]
        if len(t) < 3:
            return None
        i, j = sorted(self.rnd.sample(range(len(t) + 1), 2))
        return {a: t[:i] + t[i:j][::-1] + t[j:]}

    def solve(self, plan):
        cfg = self.cfg
        best, best_cost = plan.copy(), plan.cost()
        cost, temp, steps = best_cost, cfg.start_temp, 0
        deadline = time.monotonic() + cfg.time_limit
        while time.monotonic() < deadline:  # cause
            steps += 1
            change = self.relocate(plan) if self.rnd.random() < 0.5 else self.reverse(plan)
            temp = max(0.05, temp * cfg.cooling)
            if change is None:
                continue
            delta = sum(plan.tour_cost(t) - plan.tour_cost(plan.tours[k]) for k, t in change.items())
            if delta <= 0 or self.rnd.random() < math.exp(-delta / temp):
                for k, t in change.items():
                    plan.tours[k] = t
                cost += delta
                if cost < best_cost - 1e-9:
                    best, best_cost = plan.copy(), cost
            if steps % 5000 == 0:
                self.trace.append((steps, round(best_cost, 4)))
        log.info("search stopped after %d steps", steps)
        return best


def report(plan):
    rows = []
    for k, tour in enumerate(plan.tours):
        rows.append(
            {"vehicle": k, "stops": len(tour), "load": plan.load(tour), "km": round(plan.tour_cost(tour), 3), "tour": tour}
        )
    return rows


def check(plan, cfg):
    seen = sorted(c for t in plan.tours for c in t)
    assert seen == list(range(1, plan.inst.n + 1)), "customers missing"
    assert all(plan.load(t) <= cfg.capacity for t in plan.tours), "capacity exceeded"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--time-limit", type=float, default=Settings.time_limit)
    ap.add_argument("--customers", type=int, default=Settings.n_customers)
    args = ap.parse_args()
    cfg = Settings(time_limit=args.time_limit, n_customers=args.customers)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")

    inst = make_instance(cfg)
    start = sweep(inst, cfg)
    print(f"{inst.n} customers, demand {sum(inst.demand)}, start plan {start.cost():.3f} km")
    search = NeighbourhoodSearch(inst, cfg)
    best = search.solve(start.copy())
    check(best, cfg)
    print(f"best plan {best.cost():.3f} km ({100 * (1 - best.cost() / start.cost()):.2f}% shorter)")
    rows = report(best)
    for r in rows:
        print(f"  vehicle {r['vehicle']}: {r['stops']:3d} stops load {r['load']:3d} {r['km']:8.3f} km first {r['tour'][:4]}")
    Path("plan.json").write_text(json.dumps({"km": round(best.cost(), 4), "vehicles": rows}, indent=1))


if __name__ == "__main__":
    main()
