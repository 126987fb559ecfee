"""Ensemble of stochastic SIR epidemics on networks: numba kernel, process pool, HDF5 output."""
import argparse
import json
import logging
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import datetime

import h5py
import networkx as nx
import numba as nb
import numpy as np
from scipy import stats
from tqdm import tqdm

log = logging.getLogger("sir")


@nb.njit
def simulate(indptr, indices, beta, gamma, n_seeds, t_max, seed):
    np.random.seed(seed)
    n = len(indptr) - 1
    state = np.zeros(n, dtype=np.int8)
    for i in np.random.choice(n, n_seeds, replace=False):
        state[i] = 1
    counts = np.zeros((t_max + 1, 3), dtype=np.int64)
    for t in range(t_max + 1):
        for i in range(n):
            counts[t, state[i]] += 1
        new = state.copy()
        for i in range(n):
            if state[i] == 1:
                for k in range(indptr[i], indptr[i + 1]):
                    j = indices[k]
                    if state[j] == 0 and np.random.random() < beta:
                        new[j] = 1
                if np.random.random() < gamma:
                    new[i] = 2
        state = new
    return counts


def make_graph(kind, n, seed):
    if kind == "ws":
        g = nx.watts_strogatz_graph(n, 8, 0.1, seed=seed)
    elif kind == "ba":
        g = nx.barabasi_albert_graph(n, 4, seed=seed)
    else:
        g = nx.gnm_random_graph(n, 4 * n, seed=seed)
    a = nx.to_scipy_sparse_array(g, nodelist=range(n), format="csr")
    return a.indptr.astype(np.int64), a.indices.astype(np.int64)


def run_chunk(task):
    kind, beta, gamma, n, t_max, seeds, graph_seed = task
    t0 = time.perf_counter()
    indptr, indices = make_graph(kind, n, graph_seed)
    out = np.stack([simulate(indptr, indices, beta, gamma, 5, t_max, int(s)) for s in seeds])
    return (kind, beta), out, time.perf_counter() - t0, os.getpid()


def summarise(counts, n):
    final = counts[:, -1, 2] / n
    peak = counts[:, :, 1].max(axis=1)
    peak_t = counts[:, :, 1].argmax(axis=1)
    lo, hi = np.percentile(final, [2.5, 97.5])
    sem = stats.sem(peak)
    return {"attack_rate": float(final.mean()), "attack_lo": float(lo), "attack_hi": float(hi),
            "peak_mean": float(peak.mean()), "peak_sem": float(sem), "peak_time": float(np.median(peak_t)),
            "p_major": float((final > 0.1).mean())}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nodes", type=int, default=600)
    ap.add_argument("--replicates", type=int, default=30)
    ap.add_argument("--t-max", type=int, default=60)
    ap.add_argument("--gamma", type=float, default=0.2)
    ap.add_argument("--betas", type=float, nargs="+", default=[0.02, 0.04, 0.08])
    ap.add_argument("--graphs", nargs="+", default=["ws", "ba", "er"])
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--seed", type=int, default=12345)
    ap.add_argument("--outdir", default="sir_results")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(levelname)s %(message)s")
    os.makedirs(args.outdir, exist_ok=True)

    ss = np.random.SeedSequence(args.seed)
    grid = [(k, b) for k in args.graphs for b in args.betas]
    tasks = []
    for (kind, beta), child in zip(grid, ss.spawn(len(grid))):
        seeds = child.generate_state(args.replicates)
        tasks.append((kind, beta, args.gamma, args.nodes, args.t_max, seeds, args.seed))
    log.info("%d parameter points x %d replicates on %d workers", len(grid), args.replicates, args.workers)
    t0 = time.perf_counter()
    results, timing = {}, {}
    with ProcessPoolExecutor(args.workers) as pool:
        futures = [pool.submit(run_chunk, t) for t in tasks]
        for fut in tqdm(as_completed(futures), total=len(futures), desc="points"):
            key, out, dt, pid = fut.result()
            results[key], timing[key] = out, dt
            print(f"{key[0]} beta={key[1]:.3f} finished by {pid} in {dt:.2f} s", flush=True)
    wall = time.perf_counter() - t0

    print(f"\n{'graph':>6} {'beta':>6} {'attack':>8} {'95% interval':>18} {'peak':>8} {'t_peak':>7} {'P(major)':>9}")
    summary = []
    for key in grid:
        s = summarise(results[key], args.nodes)
        summary.append({"graph": key[0], "beta": key[1], **s})
        print(f"{key[0]:>6} {key[1]:>6.3f} {s['attack_rate']:>8.4f} [{s['attack_lo']:.4f}, {s['attack_hi']:.4f}]"
              f" {s['peak_mean']:>8.2f} {s['peak_time']:>7.1f} {s['p_major']:>9.3f}")
    for kind in args.graphs:
        a, b = (results[(kind, args.betas[i])][:, -1, 2] for i in (0, -1))
        u = stats.mannwhitneyu(a, b)
        print(f"{kind}: attack rate beta={args.betas[0]} vs {args.betas[-1]}: U={u.statistic:.1f} p={u.pvalue:.3e}")

    path = os.path.join(args.outdir, "ensemble.h5")
    with h5py.File(path, "w") as f:
        f.attrs["created"] = datetime.now().isoformat()
        f.attrs["seed"] = args.seed
        f.attrs["wall_time_s"] = wall
        for (kind, beta), out in sorted(results.items()):
            d = f.create_dataset(f"{kind}/beta_{beta:.3f}", data=out, compression="gzip")
            d.attrs["beta"], d.attrs["gamma"], d.attrs["columns"] = beta, args.gamma, "S,I,R"
    with open(os.path.join(args.outdir, "summary.json"), "w") as f:
        json.dump({"params": vars(args), "points": summary}, f, indent=2)
    log.info("wrote %s, total %.2f s (%.2f s in workers)", path, wall, sum(timing.values()))


if __name__ == "__main__":
    main()
