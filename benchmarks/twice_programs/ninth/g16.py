"""Stochastic placement of a template bank for compact binaries.

Modelled on https://github.com/gwastro/pycbc/pull/4803 where the bank built with several processes was not the same as before.
"""
import argparse
import json
import logging
import multiprocessing as mp
import random
import time

import h5py
import numpy as np

from g16_bank.waveform import FREQS, generate, match

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s : %(message)s")
log = logging.getLogger("brute_bank")


class Bank:
    """Accepted templates, pre-sorted by chirp time for a restricted comparison."""

    def __init__(self, threshold, tau_window):
        self.h = np.zeros((0, len(FREQS)), np.complex64)
        self.params, self.tau = np.zeros((0, 3)), np.zeros(0)
        self.threshold, self.tau_window = threshold, tau_window
        self.compared = 0

    @staticmethod
    def chirp_time(params):
        m1, m2, _ = params
        mchirp = (m1 * m2) ** 0.6 / (m1 + m2) ** 0.2
        return 5.0 / 256 * (np.pi * 20.0) ** (-8 / 3) * (mchirp * 4.93e-6) ** (-5 / 3)

    def best_match(self, params, h):
        near = np.flatnonzero(np.abs(np.log(self.tau / self.chirp_time(params))) < self.tau_window)
        self.compared += len(near)
        return float(match(self.h[near], h).max()) if len(near) else 0.0

    def consider(self, params, h):
        if self.best_match(params, h) >= self.threshold:
            return False
        self.h = np.vstack([self.h, h])
        self.params = np.vstack([self.params, params])
        self.tau = np.append(self.tau, self.chirp_time(params))
        return True


def proposals(n, rng):
    m1 = rng.uniform(8, 28, n)
    m2 = m1 * rng.uniform(0.4, 1.0, n)
    spin = rng.uniform(-0.5, 0.5, n)
    return [tuple(map(float, row)) for row in np.column_stack([m1, m2, spin])]


def fill(bank, pool, rng, rounds, size, stop_rate):
    history, number = [], 0
    for r in range(rounds):
        t0, kept = time.time(), 0
        jobs = [(number + i, p) for i, p in enumerate(proposals(size, rng))]
        number += size
        for _, params, h in pool.imap_unordered(generate, jobs, chunksize=6):  # cause
            kept += bank.consider(params, h)
        history.append(kept / size)
        log.info("round %d kept %d, bank %d, %.0f proposals/s", r, kept, len(bank.params), size / (time.time() - t0))
        if history[-1] < stop_rate:
            break
    return history


def coverage(bank, rng, n):
    """Fitting factors of fresh signals."""
    ff = [bank.best_match(p, generate((0, p))[2]) for p in proposals(n, rng)]
    return {"ff_mean": float(np.mean(ff)), "ff_p10": float(np.quantile(ff, 0.1)), "ff_min": float(np.min(ff))}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=150914)
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--size", type=int, default=360)
    p.add_argument("--threshold", type=float, default=0.95)
    p.add_argument("--tau-window", type=float, default=0.35)
    p.add_argument("--stop-rate", type=float, default=0.03)
    p.add_argument("--injections", type=int, default=80)
    p.add_argument("--cores", type=int, default=2)
    p.add_argument("--out", default="bank.hdf5")
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed % 2 ** 32)
    rng = np.random.default_rng(args.seed)
    bank = Bank(args.threshold, args.tau_window)
    with mp.get_context("fork").Pool(args.cores) as pool:
        rates = fill(bank, pool, rng, args.rounds, args.size, args.stop_rate)
    cov = coverage(bank, np.random.default_rng(args.seed + 1), args.injections)
    with h5py.File(args.out, "w") as f:
        f["mass1"], f["mass2"], f["spin"] = bank.params.T
        f.attrs["threshold"] = args.threshold
    with open("coverage.json", "w") as f:
        json.dump({"templates": len(bank.params), "rates": rates, "compared": bank.compared, **cov}, f, indent=1)
    print(f"templates {len(bank.params)} compared {bank.compared} " + " ".join(f"{k} {v:.7f}" for k, v in cov.items()))


if __name__ == "__main__":
    main()
