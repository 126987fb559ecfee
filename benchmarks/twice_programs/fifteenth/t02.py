#!/usr/bin/env python
"""Lifelong imitation learning over a suite of manipulation tasks.

Modelled on https://github.com/sylvestf/LIBERO-plus/pull/73

Learns the tasks of a suite one after another with experience replay, in the
order selected by --task-order-index, and reports forward and backward transfer.
"""
import argparse
import json
import logging
import random
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from t02_pkg import MLPPolicy, get_benchmark, list_suites
from t02_pkg.policy import RehearsalBuffer

logger = logging.getLogger("lifelong")


def control_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def parse_args():
    p = argparse.ArgumentParser(description="lifelong learning with experience replay")
    p.add_argument("--benchmark", default="spatial", choices=list_suites())
    p.add_argument("--task-order-index", type=int, default=1)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--demos", type=int, default=384)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--save-dir", type=Path, default=Path("experiments"))
    return p.parse_args()


class Sequential:
    """Experience replay learner."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.policy = MLPPolicy()
        self.buffer = RehearsalBuffer()
        self.gen = torch.Generator().manual_seed(cfg.seed + 1)
        self.loss_fn = nn.MSELoss()

    def learn_task(self, task):
        x, y = (torch.from_numpy(a) for a in task.demos(self.cfg.demos, self.cfg.seed))
        loader = DataLoader(TensorDataset(x, y), batch_size=self.cfg.batch_size, shuffle=True,
                            generator=self.gen)
        opt = torch.optim.AdamW(self.policy.parameters(), lr=self.cfg.lr)
        self.policy.train()
        last = 0.0
        for _ in range(self.cfg.epochs):
            total = 0.0
            for xb, yb in loader:
                replay = self.buffer.sample(len(xb), self.gen)
                if replay is not None:
                    xb = torch.cat([xb, replay[0]])
                    yb = torch.cat([yb, replay[1]])
                loss = self.loss_fn(self.policy(xb), yb)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), 5.0)
                opt.step()
                total += loss.item()
            last = total / len(loader)
        self.buffer.add(x, y)
        return last

    @torch.no_grad()
    def evaluate(self, task):
        self.policy.eval()
        x, y = (torch.from_numpy(a) for a in task.demos(256, self.cfg.seed + 1000))
        return float(self.loss_fn(self.policy(x), y))


def main():
    cfg = parse_args()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    control_seed(cfg.seed)
    benchmark = get_benchmark(cfg.benchmark, cfg.task_order_index)
    cfg.save_dir.mkdir(parents=True, exist_ok=True)
    logger.info("suite %s with %d tasks, order index %d", cfg.benchmark, len(benchmark), cfg.task_order_index)

    algo = Sequential(cfg)
    n = len(benchmark)
    matrix = np.full((n, n), np.nan)
    t0 = time.time()
    for i in range(n):
        task = benchmark.get_task(i)
        train_loss = algo.learn_task(task)
        for j in range(i + 1):
            matrix[i, j] = algo.evaluate(benchmark.get_task(j))
        logger.info("task %d/%d %-60s train %.4f eval %.4f", i + 1, n, task.language[:60], train_loss, matrix[i, i])

    forgetting = float(np.mean(matrix[-1] - np.diag(matrix)))
    result = {
        "final_mean_loss": round(float(np.mean(matrix[-1])), 6),
        "learning_loss": round(float(np.mean(np.diag(matrix))), 6),
        "forgetting": round(forgetting, 6),
    }
    np.savetxt(cfg.save_dir / "loss_matrix.csv", matrix, delimiter=",", fmt="%.6f")
    (cfg.save_dir / "result.json").write_text(json.dumps(result, indent=1))
    torch.save(algo.policy.state_dict(), cfg.save_dir / "policy.pt")
    logger.info("finished after %.1fs", time.time() - t0)
    print("result:", result)


if __name__ == "__main__":
    main()
