"""Hamiltonian Monte Carlo for the eight schools and a small regression, with CmdStan's console and CSV files.

Output follows CmdStan (https://github.com/stan-dev/cmdstan/issues/21, https://github.com/stan-dev/cmdstanr/issues/303 for the
dated file names): "Gradient evaluation took", Iteration lines, "Elapsed Time" in console and at the CSV's end, a stansummary table.
"""
import json
import os
import time
from datetime import datetime
from pathlib import Path

import numpy as np

WARMUP, SAMPLES, CHAINS = 500, 500, 4
SEED = 20240


class EightSchools:
    name = "eight_schools"
    y = np.array([28, 8, -3, 7, -1, 1, 18, 12.0])
    sigma = np.array([15, 10, 16, 11, 9, 11, 10, 18.0])
    params = ["mu", "log_tau"] + [f"theta_tilde.{i}" for i in range(1, 9)]

    def logp(self, q):
        mu, lt, z = q[0], q[1], q[2:]
        tau = np.exp(lt)
        r = (self.y - mu - tau * z) / self.sigma
        lp = -0.5 * (r @ r) - 0.5 * (z @ z) - mu * mu / 50 - np.log1p((tau / 5) ** 2) + lt
        g = r / self.sigma
        grad = np.empty_like(q)
        grad[0] = g.sum() - mu / 25
        grad[1] = tau * (g @ z) - 2 * (tau / 5) ** 2 / (1 + (tau / 5) ** 2) + 1
        grad[2:] = tau * g - z
        return lp, grad


class Regression:
    name = "linreg"
    params = ["alpha", "beta.1", "beta.2", "log_sigma"]

    def __init__(self):
        r = np.random.default_rng(1)
        self.x = r.normal(size=(120, 2))
        self.y = 0.5 + self.x @ np.array([1.5, -0.8]) + 0.7 * r.normal(size=120)

    def logp(self, q):
        s = np.exp(q[3])
        e = (self.y - q[0] - self.x @ q[1:3]) / s
        lp = -0.5 * (e @ e) - len(e) * q[3] - 0.5 * (q[:3] @ q[:3]) / 25 - 0.5 * q[3] ** 2
        return lp, np.concatenate([[e.sum() / s], self.x.T @ e / s, [e @ e - len(e) - q[3]]]) - \
            np.concatenate([q[:3] / 25, [0.0]])


def hmc(model, chain, path, started):
    rng = np.random.default_rng([SEED, chain])
    q = rng.uniform(-1, 1, len(model.params))
    t = time.perf_counter()
    lp, g = model.logp(q)
    took = time.perf_counter() - t
    print(f"Chain {chain}: Gradient evaluation took {took:.3g} seconds")
    print(f"Chain {chain}: 1000 transitions using 10 leapfrog steps per transition would take {took * 10000:.4g} seconds.")
    print(f"Chain {chain}: Adjust your expectations accordingly!\n")
    f = open(path, "w")
    f.write("# stan_version_major = 2\n# stan_version_minor = 33\n")
    f.write(f"# model = {model.name}_model\n# start_datetime = {started:%Y-%m-%d %H:%M:%S UTC}\n# method = sample (Default)\n"
            f"#     num_samples = {SAMPLES}\n#     num_warmup = {WARMUP}\n# id = {chain}\n# random\n#   seed = {SEED}\n# output\n"
            f"#   file = {path.resolve()}\n#     sig_figs = -1 (Default)\n")
    f.write(",".join(["lp__", "accept_stat__", "stepsize__", "n_leapfrog__", "divergent__", "energy__"] + model.params) + "\n")
    eps, hbar, log_bar, mu = 0.1, 0.0, 0.0, np.log(1.0)
    draws, tw = [], time.perf_counter()
    for it in range(1, WARMUP + SAMPLES + 1):
        if it == 1 or it % 100 == 0 or it == WARMUP + 1:
            print(f"Chain {chain}: Iteration: {it:4d} / {WARMUP + SAMPLES} [{100 * it // (WARMUP + SAMPLES):3d}%]  "
                  f"({'Warmup' if it <= WARMUP else 'Sampling'})")
        p = rng.normal(size=len(q))
        h0 = lp - 0.5 * p @ p
        n = int(rng.integers(5, 16))
        q1, g1, p1 = q.copy(), g, p
        for _ in range(n):
            p1 = p1 + 0.5 * eps * g1
            q1 = q1 + eps * p1
            lp1, g1 = model.logp(q1)
            p1 = p1 + 0.5 * eps * g1
        h1 = lp1 - 0.5 * p1 @ p1
        acc = min(1.0, float(np.exp(min(0.0, h1 - h0)))) if np.isfinite(h1) else 0.0
        if rng.random() < acc:
            q, lp, g = q1, lp1, g1
        if it <= WARMUP:
            eta = 1.0 / (it + 10)
            hbar = (1 - eta) * hbar + eta * (0.8 - acc)
            le = mu - np.sqrt(it) / 0.05 * hbar
            w = it ** -0.75
            log_bar = w * le + (1 - w) * log_bar
            eps = float(np.exp(le if it < WARMUP else log_bar))
            if it == WARMUP:
                warm = time.perf_counter() - tw
                ts = time.perf_counter()
                f.write(f"# Adaptation terminated\n# Step size = {eps:.6g}\n# Diagonal elements of inverse mass matrix:\n# "
                        + ", ".join(["1"] * len(q)) + "\n")
        else:
            draws.append(q.copy())
            f.write(",".join("%.6g" % v for v in [lp, acc, eps, n, int(h0 - h1 > 1000), -h0, *q]) + "\n")
    samp = time.perf_counter() - ts
    lines = [f" Elapsed Time: {warm:.6g} seconds (Warm-up)", f"               {samp:.6g} seconds (Sampling)",
             f"               {warm + samp:.6g} seconds (Total)"]
    f.write("# \n" + "".join(f"# {x}\n" for x in lines) + "# \n")
    f.close()
    print("\n" + "\n".join(f"Chain {chain}: {x}" for x in lines) + "\n")
    return np.array(draws), warm, samp


def summary(model, draws, times, fh):
    m = np.stack(draws)
    c, n, _ = m.shape
    total = sum(t[1] for t in times)
    out = [f"Inference for Stan model: {model.name}_model",
           f"{c} chains: each with iter=({n}); warmup=({WARMUP}); thin=(1); {c * n} iterations saved.", "",
           "Warmup took (" + ", ".join(f"{t[0]:.2g}" for t in times) + f") seconds, {sum(t[0] for t in times):.2g} seconds total",
           "Sampling took (" + ", ".join(f"{t[1]:.2g}" for t in times) + f") seconds, {total:.2g} seconds total", "",
           f"{'':<16}{'Mean':>10}{'MCSE':>10}{'StdDev':>10}{'5%':>10}{'50%':>10}{'95%':>10}{'N_Eff':>9}{'N_Eff/s':>10}{'R_hat':>8}"]
    for k, name in enumerate(model.params):
        x = m[:, :, k]
        w = x.var(1, ddof=1).mean()
        v = (n - 1) / n * w + x.mean(1).var(ddof=1)
        z = x - x.mean()
        rho, ess = 0.0, 1.0
        for lag in range(1, n // 2):
            rho = float((z[:, lag:] * z[:, :-lag]).mean() / z.var())
            if rho < 0.05:
                break
            ess += 2 * rho
        neff = c * n / ess
        q = np.quantile(x, [0.05, 0.5, 0.95])
        out.append(f"{name:<16}{x.mean():>10.4f}{x.std() / np.sqrt(neff):>10.4f}{x.std():>10.4f}{q[0]:>10.4f}{q[1]:>10.4f}{q[2]:>10.4f}"
                   f"{neff:>9.1f}{neff / total:>10.1f}{np.sqrt(v / w):>8.4f}")
    print("\n".join(out) + "\n")
    fh.write("\n".join(out) + "\n\n")


def main():
    started = datetime.now()
    folder = Path(f"output_{started:%Y%m%d%H%M%S}")
    folder.mkdir()
    profile = {}
    with open("stansummary.txt", "w") as fh:
        for model in (EightSchools(), Regression()):
            draws, times = [], []
            for chain in range(1, CHAINS + 1):
                d, w, s = hmc(model, chain, folder / f"{model.name}-{started:%Y%m%d%H%M%S}_{chain}.csv", datetime.utcnow())
                draws.append(d)
                times.append((w, s))
            summary(model, draws, times, fh)
            profile[model.name] = {"warmup_s": [t[0] for t in times], "sampling_s": [t[1] for t in times], "pid": os.getpid()}
            np.save(f"{model.name}_draws.npy", np.stack(draws))
    with open("timing.json", "w") as f:
        json.dump({"created": datetime.now().isoformat(), "chains": profile}, f, indent=1)


if __name__ == "__main__":
    import warnings
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    main()
