"""Facility location and knapsack-type MIPs solved with HiGHS through scipy, solver log on.

Output follows HiGHS (https://github.com/ERGO-Code/HiGHS/issues/1284, https://github.com/ERGO-Code/HiGHS/issues/2307):
presolve lines with seconds, the B&B table with its Time column, "Solving report" with Timing. A results table in the style of
Mittelmann's benchmarks is written besides.
"""
import csv
import os
import platform
import sys
import time
from datetime import datetime

import numpy as np
import scipy
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_matrix, csr_matrix, lil_matrix


def facility(nf, nc, seed):
    """Capacitated facility location; variables y_f (open), x_fc (share served)."""
    rng = np.random.default_rng(seed)
    pf, pc = rng.uniform(0, 100, (nf, 2)), rng.uniform(0, 100, (nc, 2))
    demand = rng.integers(5, 36, nc)
    cap = rng.integers(60, 161, nf)
    open_cost = rng.integers(300, 900, nf)
    dist = np.sqrt(((pf[:, None] - pc[None]) ** 2).sum(-1)).round(3)
    n = nf + nf * nc
    c = np.concatenate([open_cost, (dist * demand / 10).ravel()]).astype(float)
    A = lil_matrix((nc + nf + nf * nc, n))
    lo, hi = np.full(A.shape[0], -np.inf), np.zeros(A.shape[0])
    for j in range(nc):
        for f in range(nf):
            A[j, nf + f * nc + j] = 1
        lo[j] = hi[j] = 1
    for f in range(nf):
        A[nc + f, f] = -int(cap[f])
        for j in range(nc):
            A[nc + f, nf + f * nc + j] = int(demand[j])
            A[nc + nf + f * nc + j, nf + f * nc + j] = 1
            A[nc + nf + f * nc + j, f] = -1
    integrality = np.concatenate([np.ones(nf), np.zeros(nf * nc)])
    return c, csr_matrix(A), lo, hi, integrality, Bounds(0, 1)


def multiknapsack(n, m, seed):
    rng = np.random.default_rng(seed)
    w = rng.integers(10, 100, (m, n))
    v = w.sum(0) / m + rng.integers(0, 30, n)
    return -v.astype(float), csr_matrix(w), np.full(m, -np.inf), (w.sum(1) * 0.4).astype(int).astype(float), \
        np.ones(n), Bounds(0, 1)


def setcover(n, m, seed):
    rng = np.random.default_rng(seed)
    rows, cols = [], []
    for i in range(m):
        k = rng.choice(n, 5, replace=False)
        rows += [i] * 5
        cols += k.tolist()
    A = coo_matrix((np.ones(len(rows)), (rows, cols)), shape=(m, n)).tocsr()
    return rng.integers(1, 20, n).astype(float), A, np.ones(m), np.full(m, np.inf), np.ones(n), Bounds(0, 1)


INSTANCES = [("cflp_8_24", facility, (8, 24, 1)), ("cflp_14_45", facility, (14, 45, 2)),
             ("mknap_40_5", multiknapsack, (40, 5, 3)), ("scp_90_160", setcover, (90, 160, 4))]


def solve(name, build, args):
    t = time.perf_counter()
    c, A, lo, hi, integ, bounds = build(*args)
    tb = time.perf_counter() - t
    print(f"--- {name}: {A.shape[0]} rows, {A.shape[1]} cols, {A.nnz} nonzeros (read in {tb:.3f} s) ---", flush=True)
    t = time.perf_counter()
    res = milp(c, constraints=LinearConstraint(A, lo, hi), integrality=integ, bounds=bounds,
               options={"disp": True, "mip_rel_gap": 0.0})
    ts = time.perf_counter() - t
    sys.stdout.flush()
    x = np.where(integ == 1, np.round(res.x), res.x)
    row = {"instance": name, "status": res.message.split(".")[0], "objective": round(float(res.fun), 6),
           "bound": round(float(res.mip_dual_bound), 6), "nodes": int(res.mip_node_count),
           "ones": "".join(str(i) + " " for i in np.nonzero(x[integ == 1])[0])[:60].strip(), "time": round(ts, 4),
           "nodes_per_s": round(res.mip_node_count / ts, 1), "solved_at": datetime.now().isoformat(timespec="milliseconds")}
    print(f"{name}: {row['objective']} ({row['nodes']} nodes, {ts:.2f} s)\n", flush=True)
    return row, (c, A, lo, hi)


def relaxation(name, data):
    c, A, lo, hi = data
    eq = lo == hi
    up = np.isfinite(hi) & ~eq
    dn = np.isfinite(lo) & ~eq
    from scipy.sparse import vstack
    Aub = vstack([A[up], -A[dn]]) if dn.any() or up.any() else None
    bub = np.concatenate([hi[up], -lo[dn]])
    t = time.perf_counter()
    r = linprog(c, A_ub=Aub, b_ub=bub, A_eq=A[eq] if eq.any() else None, b_eq=lo[eq] if eq.any() else None, bounds=(0, 1),
                method="highs-ds")
    print(f"LP relaxation {name:<12} {r.fun:16.6f}  iterations {r.nit:5d}  {1000 * (time.perf_counter() - t):8.1f} ms")
    return float(r.fun)


def main():
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    print(f"HiGHS via scipy {scipy.__version__} on {platform.node()} (pid {os.getpid()}), started {datetime.now():%a %b %d %H:%M:%S %Y}",
          flush=True)
    rows, t = [], time.time()
    for name, build, args in INSTANCES:
        row, data = solve(name, build, args)
        row["relaxation"] = round(relaxation(name, data), 6)
        rows.append(row)
    os.makedirs(f"bench_{stamp}")
    with open(f"bench_{stamp}/results.csv", "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=list(rows[0]))
        w.writeheader()
        w.writerows(rows)
    gm = float(np.exp(np.mean([np.log(r["time"] + 1) for r in rows])) - 1)
    print(f"\n{'instance':<12}{'objective':>16}{'nodes':>8}{'time':>9}")
    for r in rows:
        print(f"{r['instance']:<12}{r['objective']:>16.4f}{r['nodes']:>8d}{r['time']:>9.2f}")
    print(f"shifted geometric mean of times {gm:.3f} s; total {time.time() - t:.2f} s")


if __name__ == "__main__":
    main()
