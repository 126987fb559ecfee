"""Approximate Bayesian computation for an epidemic model.

Modelled on https://github.com/ICB-DCM/pyABC/issues/392
Infers infection and recovery rates with a sequential ABC sampler on two worker processes.
"""
import argparse
import json
import logging
import multiprocessing as mp
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sqlalchemy import create_engine

logger = logging.getLogger("abc")


@dataclass
class AbcConfig:
    seed: int = 21
    population: int = 300
    generations: int = 4
    workers: int = 2
    block: int = 20
    people: int = 400
    days: int = 40


class Prior:
    low = np.array([0.1, 0.02])
    high = np.array([1.2, 0.6])

    def sample(self, rng):
        return rng.uniform(self.low, self.high)

    def inside(self, theta):
        return bool(np.all((theta >= self.low) & (theta <= self.high)))


class SirModel:
    def __init__(self, people, days):
        self.people = people
        self.days = days

    def simulate(self, theta, rng):
        beta, gamma = theta
        s, i = self.people - 5, 5
        track = np.empty(self.days)
        for day in range(self.days):
            infected = rng.binomial(s, 1 - np.exp(-beta * i / self.people))
            recovered = rng.binomial(i, 1 - np.exp(-gamma))
            s -= infected
            i += infected - recovered
            track[day] = i
        return track


def distance(x, y):
    return float(np.sqrt(np.mean((x - y) ** 2)))


_worker = {}


def init_worker(cfg, observed):
    _worker["cfg"] = cfg
    _worker["model"] = SirModel(cfg.people, cfg.days)
    _worker["observed"] = observed
    _worker["prior"] = Prior()
    _worker["rng"] = np.random.RandomState()  # cause


def propose(particles, weights, scale):
    rng, prior = _worker["rng"], _worker["prior"]
    if particles is None:
        return prior.sample(rng)
    while True:
        base = particles[rng.choice(len(particles), p=weights)]
        theta = base + rng.normal(size=2) * scale
        if prior.inside(theta):
            return theta


def run_block(job):
    particles, weights, scale, epsilon, size = job
    accepted = []
    for _ in range(size):
        theta = propose(particles, weights, scale)
        track = _worker["model"].simulate(theta, _worker["rng"])
        d = distance(track, _worker["observed"])
        if d <= epsilon:
            accepted.append((theta, d))
    return accepted


class AbcSmc:
    def __init__(self, cfg, observed):
        self.cfg = cfg
        self.observed = observed
        self.history = []

    def _weights(self, thetas, particles, weights, scale):
        if particles is None:
            return np.full(len(thetas), 1 / len(thetas))
        diff = (thetas[:, None] - particles[None]) / scale
        kernel = np.exp(-0.5 * (diff ** 2).sum(-1))
        w = 1.0 / (kernel @ weights)
        return w / w.sum()

    def _generation(self, pool, particles, weights, scale, epsilon):
        accepted, blocks = [], 0
        job = (particles, weights, scale, epsilon, self.cfg.block)
        while len(accepted) < self.cfg.population:
            for part in pool.map(run_block, [job] * (2 * self.cfg.workers)):
                accepted.extend(part)
                blocks += 1
        return accepted[: self.cfg.population], blocks * self.cfg.block

    def run(self):
        particles = weights = scale = None
        epsilon = 90.0
        with mp.get_context("fork").Pool(self.cfg.workers, init_worker,
                                         (self.cfg, self.observed)) as pool:
            for t in range(self.cfg.generations):
                accepted, tried = self._generation(pool, particles, weights, scale, epsilon)
                thetas = np.array([a[0] for a in accepted])
                dists = np.array([a[1] for a in accepted])
                weights = self._weights(thetas, particles, weights, scale)
                particles = thetas
                scale = 1.5 * thetas.std(0) + 1e-3
                logger.info("t=%d eps=%.2f acceptance=%.3f", t, epsilon, len(dists) / tried)
                self.history.append((t, epsilon, tried, thetas, weights, dists))
                epsilon = float(np.quantile(dists, 0.5))
        return particles, weights


def store(history):
    frames = []
    for t, eps, tried, thetas, w, d in history:
        frame = pd.DataFrame(thetas, columns=["beta", "gamma"])
        frames.append(frame.assign(t=t, epsilon=eps, w=w, distance=d))
    table = pd.concat(frames, ignore_index=True)
    engine = create_engine("sqlite:///abc.db")
    table.to_sql("particles", engine, if_exists="replace", index=False)
    return table


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--population", type=int, default=AbcConfig.population)
    ap.add_argument("--seed", type=int, default=AbcConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO)
    cfg = AbcConfig(seed=args.seed, population=args.population)
    np.random.seed(cfg.seed)
    observed = SirModel(cfg.people, cfg.days).simulate((0.5, 0.15), np.random)
    t0 = time.perf_counter()
    smc = AbcSmc(cfg, observed)
    particles, weights = smc.run()
    logger.info("inference took %.2f s", time.perf_counter() - t0)
    table = store(smc.history)
    mean = weights @ particles
    result = {"beta": round(float(mean[0]), 6), "gamma": round(float(mean[1]), 6),
              "r0": round(float(mean[0] / mean[1]), 5),
              "simulations": int(sum(h[2] for h in smc.history))}
    table.to_csv("particles.csv", index=False, float_format="%.6f")
    Path("posterior.json").write_text(json.dumps(result))
    print(result)


if __name__ == "__main__":
    main()
