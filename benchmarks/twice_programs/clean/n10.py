"""Monte Carlo study of 2D Ising magnets and a stochastic SIR epidemic (NumPy only).

Writes results/ising.csv, results/sir.npz, a summary report and a figure.
"""
import csv
import datetime as dt
import getpass
import os
import platform
import time
import tracemalloc

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

SEED = 20240117
L_SIZE = 24
TEMPERATURES = np.linspace(1.6, 3.2, 9)
SWEEPS, BURN_IN = 240, 80
RESULTS = "results"


class Timer:
    def __init__(self, label):
        self.label = label

    def __enter__(self):
        self.t0 = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.elapsed = time.perf_counter() - self.t0
        print(f"{self.label}: elapsed {self.elapsed:.3f} s")


def checkerboard(n):
    i, j = np.indices((n, n))
    return (i + j) % 2 == 0


def neighbours(s):
    return np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)


def ising(temperature, rng):
    s = np.ones((L_SIZE, L_SIZE), dtype=np.int64)
    black = checkerboard(L_SIZE)
    mags, energies = [], []
    for sweep in range(SWEEPS):
        for mask in (black, ~black):
            d_e = 2 * s * neighbours(s)
            accept = rng.random(s.shape) < np.exp(-np.clip(d_e, 0, None) / temperature)
            s = np.where(mask & accept, -s, s)
        if sweep >= BURN_IN:
            mags.append(abs(s.mean()))
            energies.append(-(s * neighbours(s)).sum() / 2 / s.size)
    mags, energies = np.array(mags), np.array(energies)
    return {"T": temperature, "m": mags.mean(), "m_err": mags.std(ddof=1) / np.sqrt(len(mags)),
            "e": energies.mean(), "chi": mags.var() * s.size / temperature,
            "cv": energies.var() * s.size / temperature ** 2}


def run_ising(seeds):
    rows = []
    print(f"{'T':>6} {'|m|':>9} {'e':>9} {'chi':>9} {'cv':>9} {'sweeps/s':>9}")
    for t, seq in zip(TEMPERATURES, seeds):
        t0 = time.perf_counter()
        r = ising(float(t), np.random.default_rng(seq))
        r["seconds"] = time.perf_counter() - t0
        rows.append(r)
        print(f"{r['T']:6.2f} {r['m']:9.5f} {r['e']:9.5f} {r['chi']:9.4f} {r['cv']:9.4f} "
              f"{SWEEPS / r['seconds']:9.0f}")
    return rows


def run_sir(rng, n_rep=400, pop=1000, beta=0.3, gamma=0.1, days=160):
    s = np.full(n_rep, pop - 5)
    i = np.full(n_rep, 5)
    traj = np.empty((days, n_rep), dtype=np.int32)
    for d in range(days):
        new_inf = rng.binomial(s, 1 - np.exp(-beta * i / pop))
        new_rec = rng.binomial(i, 1 - np.exp(-gamma))
        s = s - new_inf
        i = i + new_inf - new_rec
        traj[d] = i
        if (d + 1) % 40 == 0:
            print(f"  day {d + 1:3d}: mean infected {i.mean():8.3f}  susceptible {s.mean():8.3f}")
    return traj, pop - s


def plot(rows, traj, path):
    fig, ax = plt.subplots(1, 2, figsize=(8, 3))
    ax[0].errorbar([r["T"] for r in rows], [r["m"] for r in rows],
                   yerr=[r["m_err"] for r in rows], fmt="o-")
    ax[0].set(xlabel="T", ylabel="|m|", title="Ising magnetisation")
    ax[1].fill_between(np.arange(len(traj)), *np.percentile(traj, [5, 95], axis=1), alpha=0.3)
    ax[1].plot(traj.mean(1))
    ax[1].set(xlabel="day", ylabel="infected", title="SIR")
    fig.tight_layout()
    fig.savefig(path, dpi=80)
    fig.savefig(path.replace(".png", ".pdf"))
    plt.close(fig)


def main():
    tracemalloc.start()
    os.makedirs(RESULTS, exist_ok=True)
    started = dt.datetime.now()
    print(f"# simulation started {started.isoformat(timespec='seconds')} (numpy {np.__version__})")
    children = np.random.SeedSequence(SEED).spawn(len(TEMPERATURES) + 1)
    with Timer("ising"):
        rows = run_ising(children[:-1])
    with Timer("sir"):
        traj, final_size = run_sir(np.random.default_rng(children[-1]))

    with open(f"{RESULTS}/ising.csv", "w", newline="") as f:
        f.write(f"# created {dt.date.today()} by {getpass.getuser()} on {platform.node()}\n")
        w = csv.DictWriter(f, list(rows[0]))
        w.writeheader()
        w.writerows(rows)
    np.savez_compressed(f"{RESULTS}/sir.npz", infected=traj, final_size=final_size)
    plot(rows, traj, f"{RESULTS}/figure.png")

    tc = max(rows, key=lambda r: r["chi"])["T"]
    outbreak = final_size[final_size > 100]
    report = [
        f"critical temperature (max chi): {tc:.3f}",
        f"peak infected: {traj.max(0).mean():.4f} +/- {traj.max(0).std(ddof=1):.4f}",
        f"peak day: {traj.argmax(0).mean():.4f}",
        f"final size: {outbreak.mean():.4f} ({len(outbreak)} outbreaks)",
    ]
    print("\n".join(report))
    peak = tracemalloc.get_traced_memory()[1] / 2 ** 20
    wall = (dt.datetime.now() - started).total_seconds()
    with open(f"{RESULTS}/report.txt", "w") as f:
        f.write(f"Report generated on {dt.datetime.now():%c}\n\n")
        f.write("\n".join(report) + f"\n\nwall time: {wall:.2f} s\npeak traced memory: {peak:.2f} MiB\n")
    print(f"wall time {wall:.2f} s, peak traced memory {peak:.2f} MiB")


if __name__ == "__main__":
    main()
