"""Capacitated facility location by LP based branch and bound, with SCIP's log.

Output format: the SCIP table (time, node, left, LP iter, mem, dual and primal
bound, gap), its status lines and the statistics file.
Seen at: https://github.com/scipopt/scip/issues/133
         https://github.com/SECQUOIA/gdplib/pull/21
Field: operations research.
"""
import heapq
import itertools
import os
import resource
import sys
import time

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

SITES, CUSTOMERS, SEED, FREQ = 10, 18, 31, 10


class Problem:
    def __init__(self):
        rng = np.random.default_rng(SEED)
        s, c = rng.uniform(0, 100, (SITES, 2)), rng.uniform(0, 100, (CUSTOMERS, 2))
        self.demand = rng.integers(5, 20, CUSTOMERS)
        self.capacity = rng.integers(50, 95, SITES)
        self.fixed = rng.integers(300, 700, SITES)
        self.cost = np.rint(np.hypot(*(s[:, None] - c[None]).transpose(2, 0, 1)) * self.demand / 10)
        self.n = SITES + SITES * CUSTOMERS
        self.obj = np.concatenate([self.fixed, self.cost.ravel()]).astype(float)
        eq = lil_matrix((CUSTOMERS, self.n))
        ub = lil_matrix((SITES, self.n))
        for i in range(SITES):
            ub[i, i] = -self.capacity[i]
            for j in range(CUSTOMERS):
                k = SITES + i * CUSTOMERS + j
                eq[j, k] = 1
                ub[i, k] = self.demand[j]
        self.eq, self.ub = eq.tocsr(), ub.tocsr()

    def relax(self, fixed):
        bounds = [(0, 1)] * self.n
        for i, v in fixed:
            bounds[i] = (v, v)
        return linprog(self.obj, A_ub=self.ub, b_ub=np.zeros(SITES), A_eq=self.eq, b_eq=np.ones(CUSTOMERS), bounds=bounds, method="highs-ds")


def mem_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


class Stopwatch(dict):
    def add(self, key, t0):
        calls, secs = self.get(key, (0, 0.0))
        self[key] = (calls + 1, secs + time.perf_counter() - t0)


def rounding(problem, x):
    """Open every site the relaxation uses and solve the transport problem."""
    opened = [(i, 1 if x[i] > 1e-6 else 0) for i in range(SITES)]
    return problem.relax(opened)


def main():
    t0 = time.perf_counter()
    watch = Stopwatch()
    print("SCIP version 8.1.0 [precision: 8 byte] [memory: block] [mode: optimized] [LP solver: HiGHS]")
    print("Copyright (c) 2002-2023 Zuse Institute Berlin (ZIB)\n")
    print(f"read problem <{os.path.join(os.getcwd(), 'facility.lp')}>\n============\n")
    p = Problem()
    print(f"original problem has {p.n} variables ({SITES} bin, 0 int, 0 impl, {p.n - SITES} cont) and {SITES + CUSTOMERS} constraints")
    t = time.perf_counter()
    print(f"presolving:\npresolved problem has {p.n} variables ({SITES} bin, 0 int, 0 impl, {p.n - SITES} cont) and {SITES + CUSTOMERS} constraints")
    watch.add("presolve", t)
    print(f"Presolving Time: {time.perf_counter() - t0:.2f}\n")
    head = " time | node  | left  |LP iter|LP it/n|mem/heur|mdpt |vars |cons |  dualbound   | primalbound  |  gap   | compl. "
    best, incumbent, source = np.inf, None, "-"
    counter = itertools.count()
    heap, nodes, iters, depth_max, table = [(-np.inf, next(counter), ())], 0, 0, 0, 0

    def row(mark, heur, dual):
        nonlocal table
        if table % 15 == 0:
            print(head)
        table += 1
        gap = "    Inf " if not np.isfinite(best) else f"{100 * (best - dual) / max(abs(dual), 1e-9):7.2f}%"
        primal = "      --      " if not np.isfinite(best) else f"{best:13.6e} "
        done = len(watch) and 100 * nodes / (nodes + len(heap) + 1)
        print(f"{mark} {time.perf_counter() - t0:3.1f}s|{nodes:6d} |{len(heap):6d} |{iters:6d} |{iters / max(nodes, 1):6.1f} |{heur or str(mem_mb()) + 'M':>8}|"
              f"{depth_max:4d} |{p.n:4d} |{SITES + CUSTOMERS:4d} |{dual:13.6e} |{primal}|{gap}|{done:6.2f}%")

    dual = -np.inf
    while heap:
        bound, _, fixed = heapq.heappop(heap)
        dual = bound if np.isfinite(bound) else dual
        if bound >= best - 1e-6:
            break
        t = time.perf_counter()
        res = p.relax(fixed)
        watch.add("simplex", t)
        nodes += 1
        iters += int(res.nit)
        depth_max = max(depth_max, len(fixed))
        if res.status != 0 or res.fun >= best - 1e-6:
            continue
        if nodes == 1:
            dual = float(res.fun)
        x = res.x[:SITES]
        frac = np.abs(x - np.rint(x))
        if frac.max() < 1e-6:
            best, incumbent, source = float(res.fun), res.x, "relaxation"
            row("*", "LP", max(dual, bound))
            continue
        if nodes == 1 or nodes % 8 == 0:
            t = time.perf_counter()
            h = rounding(p, x)
            watch.add("rounding", t)
            if h.status == 0 and h.fun < best - 1e-6:
                best, incumbent, source = float(h.fun), h.x, "rounding"
                row("r", "rounding", dual)
        branch = int(np.argmax(np.round(frac, 9)))
        for v in (1, 0):
            heapq.heappush(heap, (round(float(res.fun), 6), next(counter), fixed + ((branch, v),)))
        if nodes == 1 or nodes % FREQ == 0:
            row(" ", "", dual)
    total = time.perf_counter() - t0
    print("\nSCIP Status        : problem is solved [optimal solution found]")
    print(f"Solving Time (sec) : {total:.2f}\nSolving Nodes      : {nodes}")
    print(f"Primal Bound       : {best:+.14e} (found by <{source}>)\nDual Bound         : {best:+.14e}\nGap                : 0.00 %\n")
    opened = [i for i in range(SITES) if incumbent[i] > 0.5]
    print(f"objective value: {best:30.6f}")
    load = incumbent[SITES:].reshape(SITES, CUSTOMERS) @ p.demand
    for i in opened:
        print(f"open_{i:<3d} 1 \t(obj:{p.fixed[i]})  load {load[i]:.3f} of {p.capacity[i]}")
    with open("facility.sol", "w") as fh:
        fh.write(f"solution status: optimal\nobjective value: {best:.6f}\n")
        fh.writelines(f"x#{k} {v:.6f}\n" for k, v in enumerate(incumbent) if abs(v) > 1e-7)
    with open("facility.stat", "w") as fh:
        fh.write(f"SCIP Status        : solved\nTotal Time         : {total:10.2f}\n  written          : {time.ctime()}\n  process          : {os.getpid()}\n")
        fh.write("                   :   ExecTime      Calls   Time/Call\n")
        for key, (calls, secs) in sorted(watch.items()):
            fh.write(f"  {key:<17}: {secs:10.4f} {calls:10d} {secs / calls:11.6f}\n")
        fh.write(f"B&B Tree           :\n  nodes            : {nodes}\n  LP iterations    : {iters}\n  max depth        : {depth_max}\nMemory used        : {mem_mb()} MB\n")
    spent = sum(s for _, s in watch.values())
    print(f"LP share of the run: {100 * watch['simplex'][1] / total:.1f}%, {iters / spent:.0f} iterations/s", file=sys.stderr)


if __name__ == "__main__":
    main()
