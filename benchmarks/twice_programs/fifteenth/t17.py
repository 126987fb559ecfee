#!/usr/bin/env python
"""Approximate Bayesian computation for a stochastic epidemic, in worker processes.

Modelled on https://github.com/pints-team/pints/issues/1358

Parameters are drawn from a prior in the main process; workers simulate a
stochastic SIR model for each of them and return the distance to observed data.
The accepted parameters give a posterior, which is refined over a few rounds.
"""
import argparse
import json
import logging
import multiprocessing as mp
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

log = logging.getLogger("abc")

_worker = {}


@dataclass(frozen=True)
class Problem:
    population: int = 900
    infected: int = 6
    days: int = 45
    dt: float = 0.1
    true_beta: float = 0.52
    true_gamma: float = 0.19


def simulate(problem, beta, gamma, rng):
    """Binomial chain SIR with small time steps, returns the daily incidence."""
    s, i = problem.population - problem.infected, problem.infected
    per_day = int(round(1 / problem.dt))
    incidence = np.zeros(problem.days)
    for day in range(problem.days):
        for _ in range(per_day):
            p_inf = 1.0 - np.exp(-beta * i / problem.population * problem.dt)
            p_rec = 1.0 - np.exp(-gamma * problem.dt)
            new_i = rng.binomial(s, p_inf)
            new_r = rng.binomial(i, p_rec)
            s, i = s - new_i, i + new_i - new_r
            incidence[day] += new_i
        if i == 0:
            break
    return incidence


def distance(a, b):
    return float(np.sqrt(np.mean((np.sqrt(a) - np.sqrt(b)) ** 2)))


def init_worker(problem, observed, seed, counter):
    with counter.get_lock():
        index = counter.value
        counter.value += 1
    _worker["problem"] = problem
    _worker["observed"] = observed
    _worker["rng"] = np.random.default_rng([seed, index])  # cause


def evaluate(task):
    """One task: the index of the point and its parameters."""
    number, beta, gamma = task
    sim = simulate(_worker["problem"], beta, gamma, _worker["rng"])  # cause
    return number, distance(sim, _worker["observed"]), os.getpid()


class ParallelEvaluator:
    def __init__(self, problem, observed, workers, seed):
        ctx = mp.get_context("fork")
        counter = ctx.Value("i", 0)
        self.workers = workers
        self.pool = ctx.Pool(workers, init_worker, (problem, observed, seed, counter))
        self.load = {}

    def __call__(self, points):
        tasks = [(k, float(b), float(g)) for k, (b, g) in enumerate(points)]
        results = self.pool.map(evaluate, tasks, chunksize=2)  # cause
        out = np.empty(len(tasks))
        for number, value, pid in results:
            out[number] = value
            self.load[pid] = self.load.get(pid, 0) + 1
        return out

    def close(self):
        self.pool.close()
        self.pool.join()


class RejectionSampler:
    """Rounds of rejection, the next proposals are perturbed accepted points."""

    lower = np.array([0.05, 0.02])
    upper = np.array([1.2, 0.6])

    def __init__(self, evaluator, rng, keep=0.25):
        self.evaluator, self.rng, self.keep = evaluator, rng, keep
        self.rounds = []

    def propose(self, accepted, n):
        if accepted is None:
            return self.rng.uniform(self.lower, self.upper, size=(n, 2))
        scale = np.sqrt(2.0) * accepted.std(axis=0) + 1e-3
        base = accepted[self.rng.integers(len(accepted), size=n)]
        return np.clip(base + self.rng.normal(size=base.shape) * scale, self.lower, self.upper)

    def run(self, n, rounds):
        accepted = None
        for r in range(rounds):
            t0 = time.time()
            points = self.propose(accepted, n)
            dist = self.evaluator(points)
            order = np.argsort(dist, kind="stable")[: int(self.keep * n)]
            accepted = points[order]
            self.rounds.append({"round": r, "epsilon": dist[order[-1]], "beta": accepted[:, 0].mean(),
                                "gamma": accepted[:, 1].mean(), "r0": float(np.mean(accepted[:, 0] / accepted[:, 1]))})
            log.info("round %d epsilon %.4f R0 %.3f (%.2fs)", r, dist[order[-1]], self.rounds[-1]["r0"], time.time() - t0)
        return accepted, dist[order]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--points", type=int, default=240)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--workers", type=int, default=3)
    p.add_argument("--seed", type=int, default=1358)
    p.add_argument("--out", type=Path, default=Path("abc_out"))
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    np.random.seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)

    problem = Problem()
    observed = simulate(problem, problem.true_beta, problem.true_gamma, np.random.default_rng(args.seed + 1))
    evaluator = ParallelEvaluator(problem, observed, args.workers, args.seed)
    sampler = RejectionSampler(evaluator, np.random.default_rng(args.seed + 2))
    try:
        posterior, dist = sampler.run(args.points, args.rounds)
    finally:
        evaluator.close()
    log.info("tasks per process: %s", evaluator.load)

    pd.DataFrame(sampler.rounds).to_csv(args.out / "rounds.csv", index=False, float_format="%.8f")
    pd.DataFrame({"beta": posterior[:, 0], "gamma": posterior[:, 1], "distance": dist}).to_csv(
        args.out / "posterior.csv", index=False, float_format="%.8f")
    low, high = np.quantile(posterior[:, 0] / posterior[:, 1], [0.05, 0.95])
    summary = {"r0": round(sampler.rounds[-1]["r0"], 6), "interval": [round(float(low), 5), round(float(high), 5)],
               "true_r0": round(problem.true_beta / problem.true_gamma, 5)}
    (args.out / "summary.json").write_text(json.dumps(summary))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
