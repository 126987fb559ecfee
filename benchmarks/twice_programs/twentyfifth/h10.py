"""Vehicle routing by ruin and recreate.

Plans delivery tours for a set of customers with demands and one depot: starts
from a nearest-neighbour plan, then repeatedly removes a cluster of customers
and inserts them again where it is cheapest, with an acceptance threshold that
falls during the search.  Writes the tours and the course of the cost.

Modelled on: https://github.com/graphhopper/jsprit/issues/156
"""
import json
import math
import random
import time

CUSTOMERS = 90
CAPACITY = 60
MAX_ITERATIONS = 1_000_000
SEED = 156


class Problem:
    def __init__(self, seed):
        rng = random.Random(seed)
        self.points = [(50.0, 50.0)]
        centres = [(rng.uniform(5, 95), rng.uniform(5, 95)) for _ in range(7)]
        for _ in range(CUSTOMERS):
            cx, cy = rng.choice(centres)
            self.points.append((rng.gauss(cx, 9), rng.gauss(cy, 9)))
        self.demand = [0] + [rng.randint(2, 14) for _ in range(CUSTOMERS)]
        self.distance = [
            [math.hypot(a[0] - b[0], a[1] - b[1]) for b in self.points] for a in self.points
        ]
        self.nearest = [
            sorted(range(1, CUSTOMERS + 1), key=lambda j: (row[j], j)) for row in self.distance
        ]

    def length(self, tour):
        d = self.distance
        total, last = 0.0, 0
        for node in tour:
            total += d[last][node]
            last = node
        return total + d[last][0]

    def cost(self, plan):
        return sum(self.length(tour) for tour in plan)


class Budget:
    """When to stop: after a number of seconds or of iterations."""

    def __init__(self, seconds=3.0, iterations=12000):
        self.seconds = seconds
        self.iterations = iterations
        self.started = time.monotonic()

    def used_time(self):
        return (time.monotonic() - self.started) / self.seconds

    def used_iterations(self, iteration):
        return iteration / self.iterations


class RuinAndRecreate:
    def __init__(self, problem, seed):
        self.problem = problem
        self.rng = random.Random(seed)

    def initial(self):
        p = self.problem
        left = set(range(1, CUSTOMERS + 1))
        plan = []
        while left:
            tour, load, at = [], 0, 0
            while True:
                fits = [j for j in p.nearest[at] if j in left and load + p.demand[j] <= CAPACITY]
                if not fits:
                    break
                at = fits[0]
                tour.append(at)
                load += p.demand[at]
                left.remove(at)
            plan.append(tour)
        return plan

    def ruin(self, plan):
        centre = self.rng.randint(1, CUSTOMERS)
        count = self.rng.randint(4, 18)
        removed = self.problem.nearest[centre][:count]
        gone = frozenset(removed)
        kept = [[n for n in tour if n not in gone] for tour in plan]
        return [tour for tour in kept if tour], removed

    def recreate(self, plan, removed):
        p, d = self.problem, self.problem.distance
        order = list(removed)
        self.rng.shuffle(order)
        loads = [sum(p.demand[n] for n in tour) for tour in plan]
        for node in order:
            best = (2 * d[0][node], len(plan), 0)
            for t, tour in enumerate(plan):
                if loads[t] + p.demand[node] > CAPACITY:
                    continue
                last = 0
                for i, following in enumerate(tour + [0]):
                    extra = d[last][node] + d[node][following] - d[last][following]
                    extra *= 1.0 + 0.05 * self.rng.random()
                    if extra < best[0]:
                        best = (extra, t, i)
                    last = following
            _, t, i = best
            if t == len(plan):
                plan.append([])
                loads.append(0)
            plan[t].insert(i, node)
            loads[t] += p.demand[node]
        return plan

    def search(self, budget):
        current = self.initial()
        cost = self.problem.cost(current)
        best, best_cost = current, cost
        log = [(0, round(cost, 4))]
        first = 0.03 * cost
        for iteration in range(MAX_ITERATIONS):
            used = budget.used_time()  # cause
            if used >= 1.0:
                break
            candidate = self.recreate(*self.ruin(current))
            candidate_cost = self.problem.cost(candidate)
            if candidate_cost < cost + first * (1.0 - used) ** 3:
                current, cost = candidate, candidate_cost
                if cost < best_cost - 1e-9:
                    best, best_cost = current, cost
                    log.append((iteration + 1, round(cost, 4)))
        return best, best_cost, log


def main():
    problem = Problem(SEED)
    solver = RuinAndRecreate(problem, SEED + 1)
    tick = time.perf_counter()
    plan, cost, log = solver.search(Budget())
    print(f"searched for {time.perf_counter() - tick:.2f} s")
    plan = sorted(plan)
    with open("tours.json", "w") as handle:
        json.dump({"cost": round(cost, 6), "tours": plan, "improvements": log}, handle)
    print("start cost", log[0][1])
    print("best cost", round(cost, 6), "tours", len(plan))
    print("improvements", len(log) - 1, "last at iteration", log[-1][0])
    for tour in plan[:3]:
        print("  depot", *tour, "depot")


if __name__ == "__main__":
    main()
