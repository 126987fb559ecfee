"""Meta-learn an initialisation for few-shot sine regression.

Modelled on https://github.com/learnables/learn2learn/issues/6
Tasks are drawn from a dataset of sinusoids; a network is meta-trained and adapted on test tasks.
"""
import argparse
import json
import logging
import math
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("maml")


@dataclass
class MetaConfig:
    seed: int = 0
    families: int = 60
    points: int = 40
    shots: int = 8
    queries: int = 12
    meta_batch: int = 4
    iterations: int = 50
    inner_lr: float = 0.05
    outer_lr: float = 0.005
    inner_steps: int = 1
    test_steps: int = 5
    hidden: int = 24
    out_dir: str = "meta"


class SineFamilies:
    """A fixed dataset: ``families`` sinusoids sampled at ``points`` locations."""

    def __init__(self, cfg, seed):
        rng = np.random.default_rng(seed)
        amp = rng.uniform(0.5, 3.0, cfg.families)
        phase = rng.uniform(0, math.pi, cfg.families)
        x = rng.uniform(-4, 4, (cfg.families, cfg.points))
        y = amp[:, None] * np.sin(x + phase[:, None])
        self.x = torch.tensor(x, dtype=torch.float32).unsqueeze(-1)
        self.y = torch.tensor(y, dtype=torch.float32).unsqueeze(-1)

    def __len__(self):
        return len(self.x)


class TaskDataset:
    """Samples few-shot tasks: one family, disjoint support and query points."""

    def __init__(self, data, shots, queries):
        self.data, self.shots, self.queries = data, shots, queries

    def sample(self):
        family = random.randrange(len(self.data))  # cause
        picks = random.sample(range(self.data.x.shape[1]), self.shots + self.queries)  # cause
        return self.get(family, picks)

    def get(self, family, picks):
        s, q = picks[:self.shots], picks[self.shots:]
        x, y = self.data.x[family], self.data.y[family]
        return x[s], y[s], x[q], y[q]

    def fixed(self):
        """Every family once, with its first points as support."""
        picks = list(range(self.shots + self.queries))
        for family in range(len(self.data)):
            yield self.get(family, picks)


def init_params(hidden):
    sizes = [(1, hidden), (hidden, hidden), (hidden, 1)]
    params = []
    for n_in, n_out in sizes:
        w = torch.randn(n_out, n_in) * math.sqrt(2.0 / n_in) * 0.7
        params += [w.requires_grad_(), torch.zeros(n_out, requires_grad=True)]
    return params


def forward(params, x):
    h = torch.tanh(F.linear(x, params[0], params[1]))
    h = torch.tanh(F.linear(h, params[2], params[3]))
    return F.linear(h, params[4], params[5])


def adapt(params, x, y, lr, steps, create_graph):
    fast = list(params)
    for _ in range(steps):
        loss = F.mse_loss(forward(fast, x), y)
        grads = torch.autograd.grad(loss, fast, create_graph=create_graph)
        fast = [p - lr * g for p, g in zip(fast, grads)]
    return fast


def meta_train(params, tasks, cfg):
    optimizer = torch.optim.Adam(params, lr=cfg.outer_lr)
    history, start = [], time.perf_counter()
    for it in range(cfg.iterations):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(cfg.meta_batch):
            xs, ys, xq, yq = tasks.sample()
            fast = adapt(params, xs, ys, cfg.inner_lr, cfg.inner_steps, create_graph=True)
            loss = F.mse_loss(forward(fast, xq), yq) / cfg.meta_batch
            loss.backward()
            total += loss.item()
        optimizer.step()
        history.append(total)
        if (it + 1) % 10 == 0:
            log.info("iteration %3d meta loss %.5f (%.1fs)", it + 1,
                     np.mean(history[-10:]), time.perf_counter() - start)
    return history


def meta_test(params, tasks, cfg):
    before, after = [], []
    for xs, ys, xq, yq in tasks.fixed():
        with torch.no_grad():
            before.append(F.mse_loss(forward(params, xq), yq).item())
        fast = adapt(params, xs, ys, cfg.inner_lr, cfg.test_steps, create_graph=False)
        with torch.no_grad():
            after.append(F.mse_loss(forward(fast, xq), yq).item())
    return {"before": round(float(np.mean(before)), 6),
            "after": round(float(np.mean(after)), 6),
            "worst": round(float(np.max(after)), 6),
            "improved": int(sum(a < b for a, b in zip(after, before)))}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=MetaConfig.seed)
    ap.add_argument("--iterations", type=int, default=MetaConfig.iterations)
    args = ap.parse_args()
    cfg = MetaConfig(seed=args.seed, iterations=args.iterations)
    torch.manual_seed(cfg.seed)
    torch.use_deterministic_algorithms(True)
    out = Path(cfg.out_dir)
    out.mkdir(exist_ok=True)

    train = TaskDataset(SineFamilies(cfg, cfg.seed + 1), cfg.shots, cfg.queries)
    test = TaskDataset(SineFamilies(cfg, cfg.seed + 2), cfg.shots, cfg.queries)
    params = init_params(cfg.hidden)
    history = meta_train(params, train, cfg)
    result = meta_test(params, test, cfg)

    (out / "history.json").write_text(json.dumps(history))
    (out / "result.json").write_text(json.dumps(result, indent=1))
    norms = [round(float(p.detach().norm()), 5) for p in params]
    (out / "norms.json").write_text(json.dumps(norms))
    for i in range(9, len(history), 10):
        print(f"iter {i + 1:3d} loss {np.mean(history[i - 9:i + 1]):.6f}")
    print(f"test before={result['before']:.6f} after={result['after']:.6f} "
          f"worst={result['worst']:.6f} improved={result['improved']}/{len(test.data)}")


if __name__ == "__main__":
    main()
