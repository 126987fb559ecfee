"""k-eigenvalue Monte Carlo of a reflected slab reactor, reported the way OpenMC does.

Output format: OpenMC's run log, timing statistics, tallies.out and statepoint.
Seen at: https://github.com/openmc-dev/openmc/issues/1112
         https://github.com/openmc-dev/openmc/pull/2821
Field: nuclear engineering.
"""
import os
import platform
import sys
import time
from datetime import datetime

import h5py
import numpy as np

FUEL, WATER = 0, 1
SIGT = np.array([0.326, 0.65])
SIGS = np.array([0.226, 0.62])
NUSIGF = np.array([0.118, 0.0])
HALF_FUEL, HALF_TOTAL = 14.0, 20.0
BATCHES, INACTIVE, PARTICLES = 60, 15, 12000
TALLY_BINS = 10


class Timer:
    def __init__(self):
        self.total = 0.0

    def __enter__(self):
        self.t0 = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.total += time.perf_counter() - self.t0


def region(x):
    return np.where(np.abs(x) < HALF_FUEL, FUEL, WATER)


def run_batch(rng, source, k_prev):
    """Transport all histories; return k estimates, fission sites, flux tally."""
    x = source.copy()
    mu = rng.uniform(-1.0, 1.0, x.size)
    alive = np.ones(x.size, dtype=bool)
    sites, flux = [], np.zeros(TALLY_BINS)
    k_coll = k_abs = leak = 0.0
    while alive.any():
        idx = np.nonzero(alive)[0]
        # delta tracking with the majorant cross section
        dist = -np.log(rng.random(idx.size)) / SIGT.max()
        x[idx] += mu[idx] * dist
        out = np.abs(x[idx]) > HALF_TOTAL
        leak += out.sum()
        alive[idx[out]] = False
        idx = idx[~out]
        reg = region(x[idx])
        real = rng.random(idx.size) < SIGT[reg] / SIGT.max()
        idx, reg = idx[real], reg[real]
        k_coll += (NUSIGF[reg] / SIGT[reg]).sum()
        bins = ((x[idx] + HALF_TOTAL) / (2 * HALF_TOTAL) * TALLY_BINS).astype(int)
        np.add.at(flux, np.clip(bins, 0, TALLY_BINS - 1), 1.0 / SIGT[reg])
        absorbed = rng.random(idx.size) > SIGS[reg] / SIGT[reg]
        ai, ar = idx[absorbed], reg[absorbed]
        yields = NUSIGF[ar] / (SIGT[ar] - SIGS[ar])
        k_abs += yields.sum()
        born = np.floor(yields / k_prev + rng.random(ai.size)).astype(int)
        sites.append(np.repeat(x[ai], born))
        alive[ai] = False
        scat = idx[~absorbed]
        mu[scat] = rng.uniform(-1.0, 1.0, scat.size)
    n = float(source.size)
    return k_coll / n, k_abs / n, leak / n, np.concatenate(sites), flux / n


def main():
    t_start = time.perf_counter()
    timers = {k: Timer() for k in ("xs", "transport", "inactive", "active", "sync",
                                   "sample", "tally", "statepoint", "final")}
    print(" | The OpenMC Monte Carlo Code")
    print(" Copyright      | 2011-2024 MIT, UChicago Argonne LLC, and contributors")
    print(f" Version        | 0.15.0 (python {platform.python_version()})")
    print(f" Date/Time      | {datetime.now():%Y-%m-%d %H:%M:%S}")
    print(f" MPI Processes  | 1        (pid {os.getpid()} on {platform.node()})")
    print(f" OpenMP Threads | {os.environ.get('OMP_NUM_THREADS', os.cpu_count())}\n")
    with timers["xs"]:
        for name in ("U235", "U238", "H1", "O16"):
            print(f" Reading {name} from {os.getcwd()}/{name}.h5")
            time.sleep(0.002)
    rng = np.random.default_rng(1)
    source = rng.uniform(-HALF_FUEL, HALF_FUEL, PARTICLES)
    t_init = time.perf_counter() - t_start
    print("\n ====================>     K EIGENVALUE SIMULATION     <====================\n")
    print("  Bat./Gen.      k            Average k")
    print("  =========   ========   ====================")
    k, ks, kc, ka, leaks, tallies = 1.0, [], [], [], [], []
    t_sim = time.perf_counter()
    for b in range(1, BATCHES + 1):
        phase = timers["inactive" if b <= INACTIVE else "active"]
        with phase:
            with timers["transport"]:
                c, a, leak, sites, flux = run_batch(rng, source, k)
            with timers["sync"], timers["sample"]:
                source = rng.choice(sites, PARTICLES)
            k = c
            line = f"{b:7d}/1    {k:8.5f}"
            if b > INACTIVE:
                with timers["tally"]:
                    ks.append(k), kc.append(c), ka.append(a), leaks.append(leak)
                    tallies.append(flux)
                if len(ks) > 1:
                    err = np.std(ks, ddof=1) / np.sqrt(len(ks))
                    line += f"   {np.mean(ks):8.5f} +/- {err:.5f}"
        print(line)
    t_sim = time.perf_counter() - t_sim
    n = len(ks)
    tallies = np.array(tallies)
    mean, std = tallies.mean(0), tallies.std(0, ddof=1) / np.sqrt(n)
    print(f" Creating state point statepoint.{BATCHES}.h5...")
    with timers["statepoint"], h5py.File(f"statepoint.{BATCHES}.h5", "w") as f:
        f.attrs["date_and_time"] = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        f.attrs["path"] = os.path.abspath("settings.xml")
        f["k_generation"] = np.array(ks)
        f["tallies/tally 1/mean"], f["tallies/tally 1/std_dev"] = mean, std
        for key, t in timers.items():
            f[f"runtime/{key}"] = t.total
    with timers["final"], open("tallies.out", "w") as f:
        f.write(" ============================>     TALLY 1: FLUX     <=====================\n")
        for i, (m, s) in enumerate(zip(mean, std)):
            f.write(f" Mesh Index ({i + 1})\n   Flux  {m:.6f} +/- {s:.6f}\n")
    total = time.perf_counter() - t_start
    print("\n =======================>     TIMING STATISTICS     <=======================\n")
    rows = [("Total time for initialization", t_init), ("  Reading cross sections", timers["xs"].total),
            ("Total time in simulation", t_sim), ("  Time in transport only", timers["transport"].total),
            ("  Time in inactive batches", timers["inactive"].total),
            ("  Time in active batches", timers["active"].total),
            ("  Time synchronizing fission bank", timers["sync"].total),
            ("    Sampling source sites", timers["sample"].total),
            ("  Time accumulating tallies", timers["tally"].total),
            ("  Time writing statepoints", timers["statepoint"].total),
            ("Total time for finalization", timers["final"].total), ("Total time elapsed", total)]
    for label, secs in rows:
        print(f" {label:<33} = {secs:.4E} seconds")
    print(f" Calculation Rate (inactive)       = {INACTIVE * PARTICLES / timers['inactive'].total:.1f} particles/second")
    print(f" Calculation Rate (active)         = {n * PARTICLES / timers['active'].total:.1f} particles/second")
    print("\n ============================>     RESULTS     <============================\n")
    for label, v in (("k-effective (Collision)", kc), ("k-effective (Absorption)", ka),
                     ("Combined k-effective", (np.array(kc) + np.array(ka)) / 2), ("Leakage Fraction", leaks)):
        print(f" {label:<25} = {np.mean(v):.5f} +/- {np.std(v, ddof=1) / np.sqrt(n):.5f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
