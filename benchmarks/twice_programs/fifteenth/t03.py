#!/usr/bin/env python
"""Bayesian logistic regression with several Hamiltonian Monte Carlo chains.

Modelled on https://github.com/pyro-ppl/pyro/issues/1505

Every chain runs in a process of its own with its own seed and sends its samples
to the main process, which collects them as an empirical posterior, resamples it
for the predictive distribution, and writes the predictions and diagnostics.
"""
import argparse
import json
import logging
import math
import os
import time
from pathlib import Path

import torch
import torch.multiprocessing as mp

log = logging.getLogger("hmc")


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=20181031)
    p.add_argument("--num-chains", type=int, default=3)
    p.add_argument("--warmup", type=int, default=60)
    p.add_argument("--num-samples", type=int, default=150)
    p.add_argument("--leapfrog", type=int, default=8)
    p.add_argument("--step-size", type=float, default=0.02)
    p.add_argument("--predictive", type=int, default=200)
    p.add_argument("--out", type=Path, default=Path("hmc_out"))
    return p.parse_args()


def make_data(seed, n=600, d=6):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=gen, dtype=torch.float64)
    w = torch.tensor([1.4, -0.8, 0.0, 0.6, -1.9, 0.3], dtype=torch.float64)
    prob = torch.sigmoid(x @ w - 0.4)
    y = (torch.rand(n, generator=gen, dtype=torch.float64) < prob).double()
    return x, y


class Posterior:
    def __init__(self, x, y, prior_scale=2.5):
        self.x = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)
        self.y = y
        self.prior_scale = prior_scale

    @property
    def dim(self):
        return self.x.shape[1]

    def potential(self, theta):
        logits = self.x @ theta
        nll = torch.nn.functional.binary_cross_entropy_with_logits(logits, self.y, reduction="sum")
        return nll + 0.5 * (theta / self.prior_scale).pow(2).sum()

    def grad(self, theta):
        theta = theta.detach().requires_grad_(True)
        u = self.potential(theta)
        (g,) = torch.autograd.grad(u, theta)
        return u.detach(), g


class HMC:
    def __init__(self, model, step_size, leapfrog, gen):
        self.model, self.eps, self.steps, self.gen = model, step_size, leapfrog, gen
        self.accepted = 0

    def transition(self, theta):
        p0 = torch.randn(self.model.dim, generator=self.gen, dtype=torch.float64)
        u0, g = self.model.grad(theta)
        q, p = theta.clone(), p0 - 0.5 * self.eps * g
        for i in range(self.steps):
            q = q + self.eps * p
            u, g = self.model.grad(q)
            p = p - (self.eps if i < self.steps - 1 else 0.5 * self.eps) * g
        delta = u0 + 0.5 * p0.dot(p0) - u - 0.5 * p.dot(p)
        if math.log(float(torch.rand(1, generator=self.gen))) < float(delta):
            self.accepted += 1
            return q
        return theta


def chain_worker(chain_id, cfg, results):
    torch.set_num_threads(1)
    x, y = make_data(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed + 7919 * (chain_id + 1))
    kernel = HMC(Posterior(x, y), cfg.step_size, cfg.leapfrog, gen)
    theta = 0.1 * torch.randn(kernel.model.dim, generator=gen, dtype=torch.float64)
    for _ in range(cfg.warmup):
        theta = kernel.transition(theta)
    kernel.accepted = 0
    for _ in range(cfg.num_samples):
        theta = kernel.transition(theta)
        results.put((chain_id, theta.tolist()))
    results.put((chain_id, {"accept": kernel.accepted / cfg.num_samples, "pid": os.getpid()}))


class ParallelSampler:
    """Starts the chains and yields their samples."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.ctx = mp.get_context("fork")
        self.queue = self.ctx.Queue()
        self.stats = {}

    def traces(self):
        procs = [self.ctx.Process(target=chain_worker, args=(i, self.cfg, self.queue), daemon=True)
                 for i in range(self.cfg.num_chains)]
        for p in procs:
            p.start()
        alive = len(procs)
        while alive:
            chain_id, payload = self.queue.get()  # cause
            if isinstance(payload, dict):
                log.info("chain %d (pid %d) finished, acceptance %.2f", chain_id, payload["pid"], payload["accept"])
                self.stats[chain_id] = round(payload["accept"], 4)
                alive -= 1
                continue
            yield chain_id, torch.tensor(payload, dtype=torch.float64)
        for p in procs:
            p.join()


class TracePredictive:
    """Posterior predictive probabilities from resampled traces."""

    def __init__(self, traces, num_samples, seed):
        self.traces = torch.stack(traces)
        gen = torch.Generator().manual_seed(seed)
        self.index = torch.randint(len(traces), (num_samples,), generator=gen)

    def __call__(self, x):
        x = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)
        probs = torch.sigmoid(x @ self.traces[self.index].T)
        return probs.mean(1), probs.std(1)


def r_hat(chains):
    stacked = torch.stack([torch.stack(c) for _, c in sorted(chains.items())])
    n = stacked.shape[1]
    within = stacked.var(dim=1).mean(0)
    between = n * stacked.mean(dim=1).var(dim=0)
    return ((n - 1) / n + between / (n * within)).sqrt()


def main():
    cfg = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    cfg.out.mkdir(parents=True, exist_ok=True)
    t0 = time.perf_counter()
    sampler = ParallelSampler(cfg)
    traces, by_chain = [], {}
    for chain_id, theta in sampler.traces():
        traces.append(theta)
        by_chain.setdefault(chain_id, []).append(theta)
    log.info("%d traces in %.2fs", len(traces), time.perf_counter() - t0)

    test_x, test_y = make_data(cfg.seed + 1, n=200)
    mean, std = TracePredictive(traces, cfg.predictive, cfg.seed)(test_x)
    acc = float(((mean > 0.5).double() == test_y).double().mean())
    nll = float(torch.nn.functional.binary_cross_entropy(mean, test_y))
    with open(cfg.out / "predictive.csv", "w") as fh:
        fh.write("row,mean,std\n")
        for i, (m, s) in enumerate(zip(mean.tolist(), std.tolist())):
            fh.write(f"{i},{m:.8f},{s:.8f}\n")
    summary = {
        "accuracy": round(acc, 4),
        "nll": round(nll, 8),
        "r_hat": [round(v, 4) for v in r_hat(by_chain).tolist()],
        "acceptance": {str(k): sampler.stats[k] for k in sorted(sampler.stats)},
    }
    (cfg.out / "summary.json").write_text(json.dumps(summary, indent=2))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
