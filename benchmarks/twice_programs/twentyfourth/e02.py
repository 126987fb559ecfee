"""Balanced random network of integrate-and-fire neurons.

A small simulator front end: populations, random connectors and Poisson input
are described by objects that each take their random numbers from a NumpyRNG.
The script simulates an excitatory and an inhibitory population, records the
spikes and writes spikes.csv, rates.json and a connectivity summary.

Modelled on: https://github.com/NeuralEnsemble/PyNN/issues/214
"""
import json
import logging

import numpy as np

LOG = logging.getLogger("network")

CONFIG = {
    "seed": 0,
    "n_exc": 160,
    "n_inh": 40,
    "p_connect": 0.12,
    "w_exc": 0.9,
    "w_inh": -4.2,
    "input_rate": 1100.0,
    "dt": 0.1,
    "duration": 900.0,
}


class NumpyRNG:
    """Thin wrapper that the connectors and sources draw from."""

    def __init__(self, seed=None, rank=0):
        self.seed = seed
        self.rank = rank
        self.rng = np.random.RandomState()  # cause
        if self.seed:  # cause
            self.rng.seed(self.seed + self.rank)

    def next(self, n=1, distribution="uniform", **parameters):
        draw = getattr(self.rng, distribution)
        return draw(size=n, **parameters)

    def describe(self):
        return "NumpyRNG(seed=%s, rank=%d)" % (self.seed, self.rank)


class Population:
    """A group of leaky integrate-and-fire cells, kept as arrays."""

    def __init__(self, label, size, tau_m=20.0, tau_ref=2.0, v_th=-50.0, v_reset=-65.0, v_rest=-65.0):
        self.label = label
        self.size = size
        self.tau_m, self.tau_ref = tau_m, tau_ref
        self.v_th, self.v_reset, self.v_rest = v_th, v_reset, v_rest
        self.v = np.full(size, v_rest)
        self.refractory = np.zeros(size)
        self.spikes = []

    def initialize(self, values):
        self.v = np.asarray(values, dtype=float)

    def step(self, t, dt, current):
        active = self.refractory <= 0
        dv = (self.v_rest - self.v) / self.tau_m * dt + current
        self.v = np.where(active, self.v + dv, self.v_reset)
        self.refractory = np.maximum(0.0, self.refractory - dt)
        fired = np.flatnonzero(self.v >= self.v_th)
        self.v[fired] = self.v_reset
        self.refractory[fired] = self.tau_ref
        for cell in fired:
            self.spikes.append((round(t, 3), int(cell)))
        return fired


class FixedProbabilityConnector:
    def __init__(self, p_connect, weight, rng):
        self.p_connect = p_connect
        self.weight = weight
        self.rng = rng

    def connect(self, pre, post):
        draws = self.rng.next(pre.size * post.size).reshape(pre.size, post.size)
        matrix = np.where(draws < self.p_connect, self.weight, 0.0)
        LOG.info("connected %s -> %s", pre.label, post.label)
        return matrix


class PoissonDrive:
    """Independent background spikes for every cell of a population."""

    def __init__(self, rate, weight, size, rng):
        self.mean = rate
        self.weight = weight
        self.size = size
        self.rng = rng

    def sample(self, dt):
        lam = self.mean * dt / 1000.0
        return self.weight * self.rng.next(self.size, "poisson", lam=lam)


def build(config):
    rng = NumpyRNG(seed=config["seed"])
    LOG.info("using %s", rng.describe())
    exc = Population("exc", config["n_exc"])
    inh = Population("inh", config["n_inh"])
    exc.initialize(rng.next(exc.size, "uniform", low=-65.0, high=-50.0))
    inh.initialize(rng.next(inh.size, "uniform", low=-65.0, high=-50.0))
    to_exc = FixedProbabilityConnector(config["p_connect"], config["w_exc"], rng)
    to_inh = FixedProbabilityConnector(config["p_connect"], config["w_inh"], rng)
    projections = {
        ("exc", "exc"): to_exc.connect(exc, exc),
        ("exc", "inh"): to_exc.connect(exc, inh),
        ("inh", "exc"): to_inh.connect(inh, exc),
        ("inh", "inh"): to_inh.connect(inh, inh),
    }
    drives = {p.label: PoissonDrive(config["input_rate"], 0.9, p.size, rng) for p in (exc, inh)}
    return {"exc": exc, "inh": inh}, projections, drives


def simulate(populations, projections, drives, config):
    fired = {name: np.array([], dtype=int) for name in populations}
    steps = int(config["duration"] / config["dt"])
    for k in range(steps):
        t = k * config["dt"]
        currents = {name: drives[name].sample(config["dt"]) for name in populations}
        for (pre, post), weights in projections.items():
            if len(fired[pre]):
                currents[post] = currents[post] + weights[fired[pre]].sum(axis=0)
        fired = {name: pop.step(t, config["dt"], currents[name]) for name, pop in populations.items()}
    LOG.info("simulated %.1f ms", config["duration"])


def summarise(populations, config):
    rates = {}
    for name, pop in populations.items():
        rates[name] = len(pop.spikes) / pop.size / (config["duration"] / 1000.0)
    return rates


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    populations, projections, drives = build(CONFIG)
    simulate(populations, projections, drives, CONFIG)
    rates = summarise(populations, CONFIG)
    with open("spikes.csv", "w") as handle:
        handle.write("population,time_ms,cell\n")
        for name, pop in populations.items():
            for t, cell in pop.spikes:
                handle.write(f"{name},{t},{cell}\n")
    n_syn = {"%s-%s" % key: int(np.count_nonzero(m)) for key, m in projections.items()}
    with open("rates.json", "w") as handle:
        json.dump({"seed": CONFIG["seed"], "rates_hz": rates, "synapses": n_syn}, handle, indent=1)
    for key, count in n_syn.items():
        print("synapses", key, count)
    for name, rate in rates.items():
        print("mean rate %s: %.3f Hz" % (name, rate))


if __name__ == "__main__":
    main()
