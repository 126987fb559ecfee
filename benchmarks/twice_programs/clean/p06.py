"""Branch and bound for multi-dimensional knapsacks, with the log of a HiGHS MIP run.

Log format: https://github.com/ERGO-Code/HiGHS/issues/1284 and
https://github.com/ERGO-Code/HiGHS/issues/2307
"""
import csv
import heapq
import math
import os
import sys
import tempfile
import time

import numpy as np
from scipy.optimize import linprog

SEED, NCOLS, NROWS, NODE_LIMIT, REPORT = 17, 34, 6, 600, 30


class Tee:
    def __init__(self, path):
        self.f = open(path, "w")

    def __call__(self, msg=""):
        sys.stdout.write(msg + "\n")
        sys.stdout.flush()
        self.f.write(msg + "\n")


def instance():
    rng = np.random.default_rng(SEED)
    a = rng.integers(5, 100, (NROWS, NCOLS)).astype(float)
    c = a.mean(0).round() + rng.integers(0, 25, NCOLS)
    b = np.floor(a.sum(1) * 0.45)
    return a, b, c.astype(float)


def write_mps(path, a, b, c):
    with open(path, "w") as f:
        f.write("NAME knap\nROWS\n N obj\n" + "".join(f" L r{i}\n" for i in range(NROWS)) + "COLUMNS\n")
        for j in range(NCOLS):
            f.write(f" x{j} obj {-c[j]:g}\n" + "".join(f" x{j} r{i} {a[i, j]:g}\n" for i in range(NROWS)))
        f.write("RHS\n" + "".join(f" rhs r{i} {b[i]:g}\n" for i in range(NROWS)) + "ENDATA\n")


class Solver:
    def __init__(self, a, b, c, log):
        self.a, self.b, self.c, self.log = a, b, c, log
        self.t0 = time.perf_counter()
        self.clock = {"lp": 0.0, "heur": 0.0}
        self.lp_iters = self.nodes = self.leaves = 0
        self.best, self.best_x = -math.inf, None
        self.heap, self.seq = [], 0
        self.track = []

    def elapsed(self):
        return time.perf_counter() - self.t0

    def lp(self, lo, hi):
        t = time.perf_counter()
        r = linprog(-self.c, A_ub=self.a, b_ub=self.b, bounds=np.column_stack([lo, hi]), method="highs-ds")
        self.clock["lp"] += time.perf_counter() - t
        self.lp_iters += r.nit
        return (-r.fun, r.x) if r.status == 0 else (None, None)

    def rounding(self, x):
        t = time.perf_counter()
        order = np.argsort(-x, kind="stable")
        y, room = np.zeros(NCOLS), self.b.copy()
        for j in order:
            if np.all(self.a[:, j] <= room):
                y[j] = 1
                room -= self.a[:, j]
        self.clock["heur"] += time.perf_counter() - t
        return float(self.c @ y), y

    def bound(self):
        top = -self.heap[0][0] if self.heap else self.best
        return max(top, self.best)

    def report(self, src=" "):
        ub = self.bound()
        gap = 100 * (ub - self.best) / max(abs(self.best), 1) if self.best > -math.inf else math.inf
        t = self.elapsed()
        best = f"{-self.best:<15.10g}" if self.best > -math.inf else f"{'inf':<15}"
        g = f"{gap:7.2f}%" if math.isfinite(gap) else "     inf"
        expl = 100 * self.leaves / max(self.leaves + len(self.heap), 1)
        self.log(f" {src} {self.nodes:8d} {len(self.heap):7d} {self.leaves:9d} {expl:6.2f}%   {-ub:<15.10g} {best} {g}"
                 f" {0:8d} {0:6d} {0:6d} {self.lp_iters:9d} {t:7.1f}s")
        self.track.append((self.nodes, -ub, -self.best, self.lp_iters, round(t, 4)))

    def incumbent(self, val, x, src):
        if val > self.best + 1e-9:
            self.best, self.best_x = val, x.copy()
            self.report(src)

    def push(self, val, x, lo, hi):
        self.seq += 1
        heapq.heappush(self.heap, (-val, self.seq, x, lo, hi))

    def run(self):
        lo, hi = np.zeros(NCOLS), np.ones(NCOLS)
        val, x = self.lp(lo, hi)
        self.push(val, x, lo, hi)
        self.report()
        self.incumbent(*self.rounding(x), "R")
        while self.heap and self.nodes < NODE_LIMIT:
            neg, _, x, lo, hi = heapq.heappop(self.heap)
            if math.floor(-neg + 1e-6) <= self.best:
                self.leaves += 1
                continue
            self.nodes += 1
            frac = np.abs(x - np.round(x))
            if frac.max() < 1e-7:
                self.leaves += 1
                self.incumbent(-neg, np.round(x), "T")
                continue
            j = int(np.argmax(frac))
            for fix in (1.0, 0.0):
                l2, h2 = lo.copy(), hi.copy()
                l2[j] = h2[j] = fix
                val, y = self.lp(l2, h2)
                if val is None or math.floor(val + 1e-6) <= self.best:
                    self.leaves += 1
                    continue
                if self.nodes % 5 == 0:
                    self.incumbent(*self.rounding(y), "H")
                self.push(val, y, l2, h2)
            if self.nodes % REPORT == 0:
                self.report()
        return "Optimal" if not self.heap or math.floor(self.bound() + 1e-6) <= self.best else "Solution limit reached"


def main():
    log = Tee("HiGHS.log")
    log("Running HiGHS 1.6.0: Copyright (c) 2023 HiGHS under MIT licence terms")
    t0 = time.perf_counter()
    a, b, c = instance()
    with tempfile.NamedTemporaryFile("w", prefix="highs-", suffix=".mps", delete=False) as f:
        mps = f.name
    write_mps(mps, a, b, c)
    log(f"Read MIP from {mps} ({os.path.getsize(mps)} bytes) in {time.perf_counter() - t0:.6f}s")
    os.unlink(mps)
    log("Coefficient statistics:")
    log(f"  Matrix range [{a.min():.0e}, {a.max():.0e}]\n  Cost range   [{c.min():.0e}, {c.max():.0e}]")
    log(f"  Bound range  [1e+00, 1e+00]\n  RHS range    [{b.min():.0e}, {b.max():.0e}]")
    log("Presolving model")
    t_pre = time.perf_counter()
    dominated = sum(int(np.all(a[:, j] > b)) for j in range(NCOLS))
    t_pre = time.perf_counter() - t_pre
    log(f"{NROWS} rows, {NCOLS - dominated} cols, {a.size} nonzeros  {t_pre:.6f}s")
    log("Objective function is integral with scale 1\n")
    log(f"Solving MIP model with:\n   {NROWS} rows\n   {NCOLS} cols ({NCOLS} binary, 0 integer, 0 implied int., "
        f"0 continuous)\n   {a.size} nonzeros\n")
    log("        Nodes      |    B&B Tree     |            Objective Bounds              |  Dynamic Constraints |       Work")
    log("     Proc. InQueue |  Leaves   Expl. | BestBound       BestSol              Gap |   Cuts   InLp Confl. | LpIters     Time\n")
    s = Solver(a, b, c, log)
    status = s.run()
    s.report()
    total = s.elapsed()
    ub = s.bound()
    log("\nSolving report")
    log(f"  Status            {status}\n  Primal bound      {-s.best:g}\n  Dual bound        {-ub:.10g}")
    log(f"  Gap               {100 * (ub - s.best) / s.best:.2f}% (tolerance: 0.01%)")
    log(f"  Solution status   feasible\n                    {-s.best:g} (objective)")
    viol = float(np.maximum(a @ s.best_x - b, 0).max())
    log(f"                    0 (bound viol.)\n                    0 (int. viol.)\n                    {viol:g} (row viol.)")
    log(f"  Timing            {total:.2f} (total)\n                    {t_pre:.2f} (presolve)\n"
        f"                    {s.clock['lp']:.2f} (LP)\n                    {s.clock['heur']:.2f} (heuristics)")
    log(f"  Nodes             {s.nodes}\n  LP iterations     {s.lp_iters} (total)")
    with open("knap.sol", "w") as f:
        f.write(f"Model status\n{status}\n\n# Primal solution values\nFeasible\nObjective {-s.best:g}\n# Columns {NCOLS}\n")
        f.writelines(f"x{j} {v:g}\n" for j, v in enumerate(s.best_x))
    with open("progress.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["nodes", "best_bound", "best_sol", "lp_iters", "time"])
        w.writerows(s.track)


if __name__ == "__main__":
    main()
