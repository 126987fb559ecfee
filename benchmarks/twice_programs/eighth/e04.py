"""https://github.com/CMA-ES/pycma/issues/54 : CMAEvolutionStrategy seeds np.random by itself with a value from the clock
when no seed option is given, so everything drawn afterwards is arbitrary in spite of np.random.seed()."""
import json
import logging
import os
import time

import cma
import numpy as np
import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
log = logging.getLogger("policy")


class Pole:
    """Small cart-pole like system with linearised dynamics."""

    dt = 0.05

    def __init__(self, length):
        self.length = length

    def step(self, s, u):
        x, v, th, om = s
        acc = (9.8 * np.sin(th) - u * np.cos(th)) / self.length
        om = om + self.dt * acc
        th = th + self.dt * om
        v = v + self.dt * u
        x = x + self.dt * v
        return np.array([x, v, th, om])


class Policy(nn.Module):
    def __init__(self, hidden=5):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def load_flat(self, vec):
        nn.utils.vector_to_parameters(torch.as_tensor(vec, dtype=torch.float32), self.parameters())

    @property
    def size(self):
        return sum(p.numel() for p in self.parameters())


def rollout(policy, env, start, steps=40):
    s, cost = start.copy(), 0.0
    with torch.no_grad():
        for _ in range(steps):
            u = float(policy.net(torch.as_tensor(s, dtype=torch.float32))) * 4.0
            s = env.step(s, u)
            cost += s[2] ** 2 + 0.1 * s[0] ** 2 + 0.001 * u * u
            if abs(s[2]) > 1.2:
                cost += 20.0
                break
    return cost


class Objective:
    def __init__(self, policy, envs, starts):
        self.policy, self.envs, self.starts = policy, envs, starts
        self.calls = 0

    def __call__(self, vec):
        self.calls += 1
        self.policy.load_flat(vec)
        return float(np.mean([rollout(self.policy, e, s) for e in self.envs for s in self.starts]))


def optimise(objective, x0, sigma, generations):
    options = {"maxiter": generations, "popsize": 10, "verbose": -9}
    es = cma.CMAEvolutionStrategy(x0, sigma, options)  # cause
    curve = []
    while not es.stop():
        candidates = es.ask()
        values = [objective(c) for c in candidates]
        es.tell(candidates, values)
        curve.append(min(values))
    return es.result.xbest, curve


def robustness(policy, vec, n):
    policy.load_flat(vec)
    starts = 0.2 * np.random.randn(n, 4)
    lengths = np.random.uniform(0.6, 1.6, n)
    return [rollout(policy, Pole(l), s) for l, s in zip(lengths, starts)]


def main(seed=7):
    np.random.seed(seed)
    torch.manual_seed(seed)
    begin = time.perf_counter()
    policy = Policy()
    envs = [Pole(0.8), Pole(1.2)]
    starts = 0.15 * np.random.randn(2, 4)
    x0 = 0.1 * np.random.randn(policy.size)
    objective = Objective(policy, envs, starts)
    best, curve = optimise(objective, x0, 0.5, 14)
    costs = robustness(policy, best, 20)
    log.info("evaluations %d, %.2f s, load %s", objective.calls, time.perf_counter() - begin, os.getloadavg())
    log.info("best cost %.6f robust mean %.6f", min(curve), float(np.mean(costs)))
    with open("policy.json", "w") as f:
        json.dump({"curve": curve, "weights": list(map(float, best)), "robustness": costs}, f)


if __name__ == "__main__":
    main()
