#!/usr/bin/env python
"""Sequential Monte Carlo workflow built from fingerprinted steps.

Modelled on https://github.com/TARPS-group/prob-pipe/pull/318

A workflow is a chain of named steps; every step gets a fingerprint of its content
and inputs, under which its result is stored and from which its random stream is
derived.  The workflow here simulates a stochastic volatility series, filters it
with particles, and fits a small torch network to the filtered states.
"""
import argparse
import hashlib
import json
import logging
import math
import random
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

logger = logging.getLogger("workflow")


class Distribution:
    """Base class of the parametric families."""

    def __init__(self, **params):
        self.params = params

    def __eq__(self, other):
        return type(self) is type(other) and self.params == other.params

    def __hash__(self):
        return hash((type(self).__name__, tuple(sorted(self.params.items()))))


class Normal(Distribution):
    def sample(self, rng, shape):
        return self.params["loc"] + self.params["scale"] * rng.standard_normal(shape)


class StudentT(Distribution):
    def sample(self, rng, shape):
        return self.params["scale"] * rng.standard_t(self.params["df"], shape)


def fingerprint(value):
    """Digest of a nested value."""
    h = hashlib.sha256()
    if isinstance(value, dict):
        for key in sorted(value):
            h.update(key.encode() + b"=" + fingerprint(value[key]).encode())
    elif isinstance(value, (list, tuple)):
        for item in value:
            h.update(fingerprint(item).encode())
    elif isinstance(value, np.ndarray):
        h.update(str(value.dtype).encode() + str(value.shape).encode() + value.tobytes())
    else:
        h.update(f"{type(value).__name__}:{value!r}".encode())  # cause
    return h.hexdigest()


class Step:
    def __init__(self, func, **settings):
        self.func, self.settings = func, settings
        self.name = func.__name__

    def key(self, parents, seed):
        return fingerprint({"name": self.name, "settings": self.settings, "parents": list(parents), "seed": seed})

    def run(self, inputs, key):
        rng = np.random.default_rng(int(key[:16], 16))
        return self.func(inputs, rng, **self.settings)


class Workflow:
    def __init__(self, seed, store):
        self.seed, self.store = seed, store
        self.steps = []
        self.provenance = []

    def add(self, step):
        self.steps.append(step)
        return self

    def execute(self):
        self.store.mkdir(parents=True, exist_ok=True)
        results, parents = {}, []
        for step in self.steps:
            key = step.key(parents, self.seed)
            t0 = time.time()
            results[step.name] = step.run(results, key)
            np.save(self.store / f"{step.name}.npy", results[step.name])
            logger.info("%s [%s] %.2fs", step.name, key[:10], time.time() - t0)
            self.provenance.append({"step": step.name, "parents": len(parents)})
            parents.append(key)
        return results


def simulate(inputs, rng, length, mu, phi, shock, noise):
    h = np.empty(length)
    h[0] = mu
    eta = shock.sample(rng, length)
    for t in range(1, length):
        h[t] = mu + phi * (h[t - 1] - mu) + eta[t]
    return np.exp(h / 2) * noise.sample(rng, length)


def particle_filter(inputs, rng, particles, mu, phi, proposal):
    y = inputs["simulate"]
    state = mu + proposal.sample(rng, particles) / math.sqrt(1 - phi ** 2)
    out = np.empty((len(y), 3))
    loglik = 0.0
    for t, obs in enumerate(y):
        state = mu + phi * (state - mu) + proposal.sample(rng, particles)
        logw = -0.5 * (math.log(2 * math.pi) + state + obs ** 2 * np.exp(-state))
        top = logw.max()
        w = np.exp(logw - top)
        loglik += top + math.log(w.mean())
        w /= w.sum()
        mean = float(w @ state)
        out[t] = mean, float(w @ (state - mean) ** 2), loglik
        positions = (rng.random() + np.arange(particles)) / particles
        state = state[np.minimum(np.searchsorted(np.cumsum(w), positions), particles - 1)]
    return out


def windows(inputs, rng, width, keep):
    y, filtered = inputs["simulate"], inputs["particle_filter"]
    rows = [np.concatenate([np.log(np.abs(y[t - width:t]) + 1e-3), [filtered[t, 0]]]) for t in range(width, len(y))]
    rows = np.array(rows, dtype=np.float32)
    return rows[np.sort(rng.choice(len(rows), size=int(keep * len(rows)), replace=False))]


class VolNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def fit_network(rows, epochs, seed):
    torch.manual_seed(seed)
    data = torch.from_numpy(rows)
    x, y = data[:, :-1], data[:, -1]
    cut = int(0.8 * len(x))
    model = VolNet(x.shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for idx in torch.randperm(cut).split(32):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        return model, float(nn.functional.mse_loss(model(x[cut:]), y[cut:]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--length", type=int, default=900)
    p.add_argument("--particles", type=int, default=800)
    p.add_argument("--epochs", type=int, default=25)
    p.add_argument("--seed", type=int, default=318)
    p.add_argument("--out", type=Path, default=Path("workflow_out"))
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.set_num_threads(1)
    ar = {"mu": -0.6, "phi": 0.95}
    flow = Workflow(args.seed, args.out / "store")
    flow.add(Step(simulate, length=args.length, shock=Normal(loc=0.0, scale=0.25), noise=StudentT(df=8, scale=0.9), **ar))
    flow.add(Step(particle_filter, particles=args.particles, proposal=Normal(loc=0.0, scale=0.25), **ar))
    flow.add(Step(windows, width=10, keep=0.9))
    results = flow.execute()
    model, mse = fit_network(results["windows"], args.epochs, args.seed)
    torch.save(model.state_dict(), args.out / "volnet.pt")
    (args.out / "provenance.json").write_text(json.dumps(flow.provenance, indent=1))
    summary = {"loglik": round(float(results["particle_filter"][-1, 2]), 6), "test_mse": round(mse, 7),
               "mean_state": round(float(results["particle_filter"][:, 0].mean()), 7)}
    (args.out / "summary.json").write_text(json.dumps(summary))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
