"""Variational energies of small spin models with several samplers.

Report: https://github.com/netket/netket/pull/944
Every combination of model, sampler and size gets its own reproducible stream.
"""
import argparse
import csv
import itertools
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

log = logging.getLogger("vmc")


@dataclass
class VmcConfig:
    sizes: tuple = (6, 8, 10)
    samples: int = 260
    iterations: int = 40
    sweep: int = 6
    lr: float = 0.06
    seed: int = 944
    out: str = "energies.csv"


class Ising:
    name = "ising"

    def __init__(self, n, h=0.8):
        self.n, self.h = n, h

    def local(self, s, logpsi):
        bond = -(s * np.roll(s, -1, axis=1)).sum(1)
        field = np.zeros(len(s))
        base = logpsi(s)
        for i in range(self.n):
            t = s.copy()
            t[:, i] *= -1
            field += np.exp(logpsi(t) - base)
        return bond - self.h * field


class Heisenberg:
    name = "heisenberg"

    def __init__(self, n):
        self.n = n

    def local(self, s, logpsi):
        base = logpsi(s)
        out = np.zeros(len(s))
        for i in range(self.n):
            j = (i + 1) % self.n
            same = s[:, i] == s[:, j]
            t = s.copy()
            t[:, [i, j]] = t[:, [j, i]]
            out += np.where(same, 1.0, -1.0 - 2 * np.exp(logpsi(t) - base))
        return out


class LocalRule:
    name = "local"

    def propose(self, s, rng):
        t = s.copy()
        i = rng.integers(0, s.shape[1], size=len(s))
        t[np.arange(len(s)), i] *= -1
        return t


class ExchangeRule:
    name = "exchange"

    def propose(self, s, rng):
        t = s.copy()
        k = np.arange(len(s))
        i = rng.integers(0, s.shape[1], size=len(s))
        j = rng.integers(0, s.shape[1], size=len(s))
        t[k, i], t[k, j] = s[k, j], s[k, i]
        return t


class Jastrow:
    def __init__(self, n):
        self.w = np.zeros((n, n))

    def logpsi(self, s):
        return np.einsum("bi,ij,bj->b", s, self.w, s) / 2

    def grad(self, s):
        return np.einsum("bi,bj->bij", s, s) / 2


@dataclass(frozen=True)
class Case:
    model: type
    rule: type
    size: int

    def label(self):
        return f"{self.model.name}-{self.rule.name}-{self.size}"

    def stream(self, seed):
        key = hash((self.model, self.rule, self.size)) & 0x7FFFFFFF  # cause
        return np.random.default_rng([seed, key])


class Driver:
    def __init__(self, case: Case, cfg: VmcConfig):
        self.cfg = cfg
        self.case = case
        self.rng = case.stream(cfg.seed)
        self.model = case.model(case.size)
        self.rule = case.rule()
        self.state = Jastrow(case.size)
        half = np.tile([1.0, -1.0], case.size // 2)
        self.spins = np.stack([self.rng.permutation(half) for _ in range(cfg.samples)])

    def sample(self):
        for _ in range(self.cfg.sweep * self.case.size):
            new = self.rule.propose(self.spins, self.rng)
            ratio = 2 * (self.state.logpsi(new) - self.state.logpsi(self.spins))
            accept = np.log(self.rng.random(len(new))) < ratio
            self.spins = np.where(accept[:, None], new, self.spins)

    def step(self):
        self.sample()
        e = self.model.local(self.spins, self.state.logpsi)
        o = self.state.grad(self.spins)
        force = 2 * ((e - e.mean())[:, None, None] * o).mean(0)
        np.fill_diagonal(force, 0)
        self.state.w -= self.cfg.lr * (force + force.T) / 2
        return float(e.mean()), float(e.std() / np.sqrt(len(e)))

    def run(self):
        history = [self.step() for _ in range(self.cfg.iterations)]
        return history[-1]


def cases(cfg: VmcConfig):
    for model, rule, size in itertools.product((Ising, Heisenberg), (LocalRule, ExchangeRule), cfg.sizes):
        if model is Heisenberg and rule is LocalRule:
            continue
        yield Case(model, rule, size)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=VmcConfig.iterations)
    ap.add_argument("--out", default=VmcConfig.out)
    ns = ap.parse_args()
    cfg = VmcConfig(iterations=ns.iterations, out=ns.out)
    rows = []
    for case in cases(cfg):
        t0 = time.perf_counter()
        energy, error = Driver(case, cfg).run()
        rows.append((case.label(), f"{energy:.8f}", f"{error:.8f}"))
        log.info("%s done in %.2fs", case.label(), time.perf_counter() - t0)
    with open(Path(cfg.out), "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["case", "energy", "error"])
        w.writerows(rows)
    for label, energy, error in rows:
        print(f"{label:24s} {energy} +- {error}")


if __name__ == "__main__":
    main()
