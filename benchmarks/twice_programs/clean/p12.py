"""Four chains of Hamiltonian Monte Carlo for the eight schools, with CmdStan's console output and CSV files.

Formats: https://github.com/seantalts/stanli/issues/230 (console), https://github.com/stan-dev/cmdstan/issues/21 (CSV tail),
https://github.com/stan-dev/cmdstanr/issues/303 (file names like radon-202009291121-1-b07bb3.csv)
"""
import multiprocessing as mp
import os
import secrets
import sys
import time
from datetime import datetime

import numpy as np

SEED, WARMUP, SAMPLES, LEAPFROG, CHAINS = 987, 1000, 1000, 12, 4
Y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
SIGMA = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
DIM = 10                      # mu, log tau, eta[8]
NAMES = ["mu", "tau"] + [f"eta.{j}" for j in range(1, 9)] + [f"theta.{j}" for j in range(1, 9)]


def logp_grad(q):
    mu, ltau, eta = q[0], q[1], q[2:]
    tau = np.exp(ltau)
    z = (Y - mu - tau * eta) / SIGMA
    lp = -0.5 * (z ** 2).sum() - 0.5 * (eta ** 2).sum() - 0.5 * (mu / 10) ** 2 - np.log1p((tau / 5) ** 2) + ltau
    gz = z / SIGMA
    g = np.empty(DIM)
    g[0] = gz.sum() - mu / 100
    g[1] = tau * (gz * eta).sum() - 2 * (tau / 5) ** 2 / (1 + (tau / 5) ** 2) + 1
    g[2:] = tau * gz - eta
    return lp, g


class DualAverage:
    def __init__(self, eps, delta=0.8):
        self.mu, self.delta, self.h, self.logbar, self.t = np.log(10 * eps), delta, 0.0, 0.0, 0

    def update(self, accept):
        self.t += 1
        eta = 1 / (self.t + 10)
        self.h = (1 - eta) * self.h + eta * (self.delta - accept)
        log_eps = self.mu - np.sqrt(self.t) / 0.05 * self.h
        w = self.t ** -0.75
        self.logbar = w * log_eps + (1 - w) * self.logbar
        return np.exp(log_eps)


def transition(q, lp, g, eps, minv, rng):
    p = rng.normal(size=DIM) / np.sqrt(minv)
    h0 = lp - 0.5 * (p * p * minv).sum()
    q1, g1 = q.copy(), g
    for _ in range(LEAPFROG):
        p = p + 0.5 * eps * g1
        q1 = q1 + eps * minv * p
        lp1, g1 = logp_grad(q1)
        p = p + 0.5 * eps * g1
    h1 = lp1 - 0.5 * (p * p * minv).sum()
    acc = float(np.exp(min(0.0, h1 - h0))) if np.isfinite(h1) else 0.0
    div = int(not np.isfinite(h1) or h0 - h1 > 1000)
    if rng.random() < acc:
        return q1, lp1, g1, acc, div, -h1
    return q, lp, g, acc, div, -h0


def run_chain(args):
    chain, path = args
    say = lambda m: print(f"Chain [{chain}] {m}", flush=True)
    rng = np.random.default_rng([SEED, chain])
    q = rng.uniform(-2, 2, DIM)
    t0 = time.perf_counter()
    lp, g = logp_grad(q)
    dt = time.perf_counter() - t0
    say(f"Gradient evaluation took {dt:.2g} seconds")
    say(f"1000 transitions using 10 leapfrog steps per transition would take {dt * 1e4:.2f} seconds.")
    say("Adjust your expectations accordingly!")
    eps, minv, hist, divs = 0.1, np.ones(DIM), [], 0
    da = DualAverage(eps)
    f = open(path, "w")
    f.write(f"# stan_version_major = 2\n# stan_version_minor = 33\n# model = eight_schools\n"
            f"# start_datetime = {datetime.utcnow():%Y-%m-%d %H:%M:%S} UTC\n# method = sample (Default)\n"
            f"#     num_samples = {SAMPLES}\n#     num_warmup = {WARMUP}\n# id = {chain}\n# random\n#   seed = {SEED}\n"
            f"# output\n#   file = {os.path.abspath(path)}\n")
    f.write("lp__,accept_stat__,stepsize__,n_leapfrog__,divergent__,energy__," + ",".join(NAMES) + "\n")
    rows = []
    t_warm = time.perf_counter()
    for it in range(1, WARMUP + SAMPLES + 1):
        if it == 1 or it % 500 == 0 or it == WARMUP + 1:
            phase = "Warmup" if it <= WARMUP else "Sampling"
            say(f"Iteration: {it:4d} / {WARMUP + SAMPLES} [{100 * it // (WARMUP + SAMPLES):3d}%]  ({phase})")
        q, lp, g, acc, div, energy = transition(q, lp, g, eps, minv, rng)
        if it <= WARMUP:
            eps = da.update(acc)
            if WARMUP // 4 < it:
                hist.append(q)
            if it == WARMUP // 2 or it == WARMUP * 3 // 4:
                minv = 0.95 * np.var(np.array(hist), axis=0) + 0.05e-3
                hist = []
                da = DualAverage(eps)
            if it == WARMUP:
                eps = float(np.exp(da.logbar))
                warm = time.perf_counter() - t_warm
                f.write(f"# Adaptation terminated\n# Step size = {eps:.6g}\n# Diagonal elements of inverse mass matrix:\n# "
                        + ", ".join(f"{m:.6g}" for m in minv) + "\n")
                t_samp = time.perf_counter()
        else:
            divs += div
            tau = np.exp(q[1])
            row = np.concatenate([[lp, acc, eps, LEAPFROG, div, energy, q[0], tau], q[2:], q[0] + tau * q[2:]])
            rows.append(row)
            f.write(",".join(f"{v:.6g}" for v in row) + "\n")
    samp = time.perf_counter() - t_samp
    f.write(f"# \n#  Elapsed Time: {warm:.6g} seconds (Warm-up)\n#                {samp:.6g} seconds (Sampling)\n"
            f"#                {warm + samp:.6g} seconds (Total)\n# \n")
    f.close()
    say(f" Elapsed Time: {warm:.3f} seconds (Warm-up)")
    say(f"               {samp:.3f} seconds (Sampling)")
    say(f"               {warm + samp:.3f} seconds (Total)")
    return chain, os.getpid(), np.array(rows), divs, warm, samp


def rhat_ess(x):
    """x: chains x draws."""
    m, n = x.shape
    b = n * x.mean(1).var(ddof=1)
    w = x.var(axis=1, ddof=1).mean()
    v = (n - 1) / n * w + b / n
    c = x - x.mean(1, keepdims=True)
    rho, s = [], 0.0
    for lag in range(1, 100):
        r = 1 - (w - (c[:, lag:] * c[:, :-lag]).mean()) / v
        if r < 0.05:
            break
        s += r
    return np.sqrt(v / w), m * n / (1 + 2 * s)


def main():
    t0 = time.time()
    stamp, tag = datetime.now().strftime("%Y%m%d%H%M"), secrets.token_hex(3)
    paths = [(c, f"eight_schools-{stamp}-{c}-{tag}.csv") for c in range(1, CHAINS + 1)]
    print(f"Running MCMC with {CHAINS} chains, at most 2 in parallel (pid {os.getpid()})...\n", flush=True)
    with mp.get_context("fork").Pool(2) as pool:
        res = sorted(pool.imap_unordered(run_chain, paths), key=lambda r: r[0])
    total = time.time() - t0
    for chain, pid, _, _, warm, samp in res:
        print(f"Chain {chain} finished in {warm + samp:.1f} seconds (process {pid}).")
    print(f"\nAll {CHAINS} chains finished successfully.\nMean chain execution time: "
          f"{np.mean([r[4] + r[5] for r in res]):.1f} seconds.\nTotal execution time: {total:.1f} seconds.\n")
    draws = np.stack([r[2] for r in res])
    sampling = sum(r[5] for r in res)
    print(f"{'':<12}{'Mean':>10}{'StdDev':>10}{'5%':>10}{'50%':>10}{'95%':>10}{'N_Eff':>10}{'N_Eff/s':>10}{'R_hat':>8}")
    cols = ["lp__", "accept_stat__", "stepsize__", "n_leapfrog__", "divergent__", "energy__"] + NAMES
    for name in ["lp__"] + NAMES[:2] + NAMES[10:]:
        x = draws[:, :, cols.index(name)]
        rh, ess = rhat_ess(x)
        q = np.quantile(x, [.05, .5, .95])
        print(f"{name:<12}{x.mean():>10.4f}{x.std():>10.4f}{q[0]:>10.4f}{q[1]:>10.4f}{q[2]:>10.4f}{ess:>10.1f}"
              f"{ess / sampling:>10.1f}{rh:>8.4f}")
    print(f"divergences: {sum(r[3] for r in res)}", file=sys.stderr)


if __name__ == "__main__":
    main()
