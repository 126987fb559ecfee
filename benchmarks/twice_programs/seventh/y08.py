"""https://github.com/numba/numba/issues/6002 - 'Global Random Seed': functions compiled by numba draw from numba's own
generator, which np.random.seed called in ordinary Python does not reach."""
import argparse
import os
import time

import numpy as np
from numba import njit
from scipy import optimize, stats


@njit
def simulate_queue(arrival, service, servers, n):
    """Waiting times in a G/G/c queue."""
    free = np.zeros(servers)
    waits = np.empty(n)
    clock = 0.0
    for i in range(n):
        clock += np.random.exponential(1.0 / arrival)  # cause
        k = np.argmin(free)
        start = max(clock, free[k])
        waits[i] = start - clock
        free[k] = start + service[i]
    return waits


@njit
def percentile_cost(waits, servers, target):
    late = 0
    for w in waits:
        if w > target:
            late += 1
    return 2.5 * servers + 100.0 * late / len(waits)


def service_times(rng, n):
    return rng.gamma(shape=2.2, scale=0.4, size=n)


def evaluate(arrival, servers, n, reps):
    costs = []
    for _ in range(reps):
        service = service_times(np.random, n)
        waits = simulate_queue(arrival, service, servers, n)
        costs.append(percentile_cost(waits, servers, 0.5))
    return np.array(costs)


def choose_staff(arrival, n, reps):
    table = {}
    for servers in range(4, 13):
        table[servers] = evaluate(arrival, servers, n, reps)
    best = min(table, key=lambda s: table[s].mean())
    return best, table


def fit_tail(waits):
    positive = waits[waits > 1e-9]
    shape, _, scale = stats.gamma.fit(positive, floc=0)
    root = optimize.brentq(lambda q: stats.gamma.sf(q, shape, scale=scale) - 0.01, 1e-6, 1e3)
    return shape, scale, root


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=8)
    ap.add_argument("--customers", type=int, default=30000)
    ap.add_argument("--reps", type=int, default=6)
    ap.add_argument("--out", default="staffing.npz")
    args = ap.parse_args()
    np.random.seed(args.seed)
    print("process", os.getpid(), time.ctime())
    rows = []
    for arrival in (4.0, 5.5, 7.0):
        t0 = time.time()
        best, table = choose_staff(arrival, args.customers, args.reps)
        waits = simulate_queue(arrival, service_times(np.random, args.customers), best, args.customers)
        shape, scale, q99 = fit_tail(waits)
        rows.append([arrival, best, table[best].mean(), waits.mean(), shape, scale, q99])
        print(f"arrival {arrival}: {best} servers, cost {rows[-1][2]:.4f}, mean wait {rows[-1][3]:.5f}, "
              f"q99 {q99:.4f}  ({time.time() - t0:.1f}s)")
    np.savetxt("staffing.csv", np.array(rows), delimiter=",", header="arrival,servers,cost,wait,shape,scale,q99")


if __name__ == "__main__":
    main()
