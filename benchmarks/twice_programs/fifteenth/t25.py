#!/usr/bin/env python
"""Reinforcement learning of programs with verified rewards.

Modelled on https://github.com/databricks/compose-rl/pull/87

A small recurrent policy writes programs for a stack machine; the programs are
executed in verifier processes on test cases, the reward is the fraction of cases
that pass, and the policy is updated with a group-relative policy gradient.
"""
import argparse
import json
import logging
import multiprocessing as mp
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

log = logging.getLogger("grpo")

OPS = ["x", "y", "1", "2", "add", "mul", "sub", "sum", "dup", "end"]
MAX_LEN = 8


@dataclass
class RLConfig:
    seed: int = 87
    iterations: int = 24
    group: int = 16
    lr: float = 0.02
    kl: float = 0.02
    verifiers: int = 2
    reward_timeout: float = 0.0015
    max_loop: int = 40000
    out: Path = Path("rl_run")


TASKS = {
    "sum_xy": lambda x, y: x + y,
    "square": lambda x, y: x * x,
    "triangle": lambda x, y: x * (x + 1) // 2,
    "double_diff": lambda x, y: 2 * (x - y),
}
CASES = [(3, 1), (5, 2), (8, 7), (11, 4)]


def execute(program, x, y, max_loop):
    """Run a program; 'sum' replaces the top n by the sum of 1..n, in a plain loop."""
    stack = []
    for op in program:
        if op == "end":
            break
        if op == "x":
            stack.append(x)
        elif op == "y":
            stack.append(y)
        elif op in "12":
            stack.append(int(op))
        elif op == "dup" and stack:
            stack.append(stack[-1])
        elif op == "sum" and stack:
            n, total, k = stack.pop(), 0, 1
            steps = min(max_loop, 400 * (abs(n) + 1))
            for i in range(steps):
                if i % 400 == 0 and k <= n:
                    total += k
                    k += 1
            stack.append(total)
        elif len(stack) >= 2:
            b, a = stack.pop(), stack.pop()
            stack.append(a + b if op == "add" else a * b if op == "mul" else a - b)
    return stack[-1] if stack else None


def verify(task, program, max_loop):
    target = TASKS[task]
    passed = 0
    for x, y in CASES:
        value = execute(program, x, y, max_loop)
        if value is not None:
            wanted = target(x, y)
            passed += 1.0 if value == wanted else 0.3 / (1 + abs(value - wanted))
    return passed / len(CASES)


class RewardManager:
    """Scores programs in verifier processes."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.pool = mp.get_context("fork").Pool(cfg.verifiers)
        self.late = 0

    def score(self, task, programs):
        handles = [self.pool.apply_async(verify, (task, p, self.cfg.max_loop)) for p in programs]
        rewards = []
        for handle in handles:
            try:
                rewards.append(handle.get(timeout=self.cfg.reward_timeout))  # cause
            except mp.TimeoutError:
                self.late += 1
                rewards.append(0.0)  # cause
        for handle in handles:
            handle.wait()
        return rewards

    def close(self):
        self.pool.terminate()
        self.pool.join()


class Policy(nn.Module):
    def __init__(self, n_tasks, hidden=48):
        super().__init__()
        self.task = nn.Embedding(n_tasks, hidden)
        self.token = nn.Embedding(len(OPS) + 1, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.head = nn.Linear(hidden, len(OPS))

    def sample(self, task_id, n, generator):
        h = self.task.weight[task_id].expand(n, -1)
        token = torch.full((n,), len(OPS))
        alive = torch.ones(n)
        logp, entropy, tokens = torch.zeros(n), 0.0, []
        for _ in range(MAX_LEN):
            h = self.cell(self.token(token), h)
            logits = torch.log_softmax(self.head(h), dim=-1)
            token = torch.multinomial(logits.detach().exp(), 1, generator=generator).squeeze(1)
            logp = logp + alive * logits.gather(1, token[:, None]).squeeze(1)
            entropy = entropy - (alive * (logits.exp() * logits).sum(-1)).mean()
            alive = alive * (token != len(OPS) - 1).float()
            tokens.append(token)
        tokens = torch.stack(tokens, dim=1).tolist()
        return [[OPS[t] for t in row] for row in tokens], logp, entropy / MAX_LEN


def train(cfg, rewards):
    policy = Policy(len(TASKS))
    opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    gen = torch.Generator().manual_seed(cfg.seed)
    curve, best = [], {t: (0.0, []) for t in TASKS}
    for it in range(cfg.iterations):
        t0, loss, means = time.time(), 0.0, []
        for task_id, task in enumerate(TASKS):
            programs, logp, entropy = policy.sample(task_id, cfg.group, gen)
            r = torch.tensor(rewards.score(task, programs))
            for value, program in zip(r.tolist(), programs):
                if value > best[task][0]:
                    best[task] = (value, program)
            adv = (r - r.mean()) / (r.std() + 1e-4)
            loss = loss - (adv * logp).mean() - cfg.kl * entropy
            means.append(float(r.mean()))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        curve.append(means)
        if it % 5 == 0:
            log.info("iteration %d reward %.4f (%.2fs)", it, float(np.mean(means)), time.time() - t0)
    return policy, np.array(curve), best


def main():
    cfg = RLConfig()
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=cfg.seed)
    p.add_argument("--iterations", type=int, default=cfg.iterations)
    p.add_argument("--group", type=int, default=cfg.group)
    p.add_argument("--reward-timeout", type=float, default=cfg.reward_timeout)
    p.add_argument("--out", type=Path, default=cfg.out)
    for k, v in vars(p.parse_args()).items():
        setattr(cfg, k, v)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    cfg.out.mkdir(parents=True, exist_ok=True)
    rewards = RewardManager(cfg)
    try:
        policy, curve, best = train(cfg, rewards)
    finally:
        rewards.close()
    log.info("%d of %d rewards were late", rewards.late, cfg.iterations * cfg.group * len(TASKS))
    np.savetxt(cfg.out / "curve.csv", curve, delimiter=",", fmt="%.6f", header=",".join(TASKS))
    torch.save(policy.state_dict(), cfg.out / "policy.pt")
    result = {"reward": round(float(curve[-3:].mean()), 6),
              "best": {t: {"reward": round(v, 5), "program": " ".join(prog)} for t, (v, prog) in best.items()}}
    (cfg.out / "result.json").write_text(json.dumps(result, indent=1))
    print(json.dumps({"reward": result["reward"], "best": {t: b["reward"] for t, b in result["best"].items()}}))


if __name__ == "__main__":
    main()
