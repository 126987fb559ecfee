#!/usr/bin/env python
"""Policy gradient on a vectorised toy driving environment.

Modelled on https://github.com/Emerge-Lab/PufferDrive/pull/355

Many small driving environments are stepped together; a Gaussian policy with a
learned baseline steers agents towards their goals.  Writes the learning curve,
an evaluation over fixed scenarios and the weights.
"""
import argparse
import json
import logging
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

logger = logging.getLogger("drive")


@dataclass
class DriveConfig:
    num_envs: int = 48
    horizon: int = 30
    updates: int = 22
    seed: int = 355
    lr: float = 4e-3
    gamma: float = 0.97
    entropy: float = 1e-3
    out: Path = Path("drive_run")


class DriveEnv:
    """Point-mass car, goal position and randomised reward coefficients."""

    def __init__(self):
        self.rng = np.random.RandomState(0)

    def c_reset(self):
        self.pos = self.rng.uniform(-1, 1, 2)
        self.heading = self.rng.uniform(-np.pi, np.pi)
        self.speed = self.rng.uniform(0, 0.3)
        self.goal = self.rng.uniform(-1, 1, 2)
        self.comfort = self.rng.uniform(0.01, 0.05)
        return self.observe()

    def srand(self, value):
        self.rng.seed(value & 0xFFFFFFFF)

    def observe(self):
        rel = self.goal - self.pos
        c, s = np.cos(self.heading), np.sin(self.heading)
        return np.array([c * rel[0] + s * rel[1], -s * rel[0] + c * rel[1], self.speed, self.comfort * 10],
                        dtype=np.float32)

    def step(self, action):
        accel, steer = np.clip(action, -1, 1)
        before = np.linalg.norm(self.goal - self.pos)
        self.speed = float(np.clip(self.speed + 0.08 * accel, 0.0, 0.5))
        self.heading += 0.5 * steer
        self.pos = self.pos + 0.3 * self.speed * np.array([np.cos(self.heading), np.sin(self.heading)])
        after = np.linalg.norm(self.goal - self.pos)
        reward = 5.0 * (before - after) - self.comfort * (accel ** 2 + steer ** 2)
        return self.observe(), reward + (0.5 if after < 0.1 else 0.0)


class VecEnv:
    def __init__(self, num_envs, rank=0):
        self.envs = [DriveEnv() for _ in range(num_envs)]
        self.rank = rank
        self.resets = 0

    def reset(self, seed):
        obs = []
        for i, env in enumerate(self.envs):
            raw = i + seed * len(self.envs) + os.getpid() + time.monotonic_ns()  # cause
            env.srand(raw ^ (raw >> 16))
            obs.append(env.c_reset())
        self.resets += 1
        return np.stack(obs)

    def step(self, actions):
        out = [env.step(a) for env, a in zip(self.envs, actions)]
        return np.stack([o for o, _ in out]), np.array([r for _, r in out], dtype=np.float32)


class Policy(nn.Module):
    def __init__(self, obs_dim=4, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mean = nn.Linear(hidden, 2)
        self.value = nn.Linear(hidden, 1)
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, obs):
        h = self.body(obs)
        return torch.distributions.Normal(self.mean(h), self.log_std.exp()), self.value(h).squeeze(-1)


def rollout(env, policy, cfg, seed):
    obs = torch.from_numpy(env.reset(seed))
    logps, values, rewards, entropy = [], [], [], 0.0
    for _ in range(cfg.horizon):
        dist, value = policy(obs)
        action = dist.sample()
        nxt, reward = env.step(action.numpy())
        logps.append(dist.log_prob(action).sum(-1))
        values.append(value)
        rewards.append(torch.from_numpy(reward))
        entropy = entropy + dist.entropy().sum(-1).mean()
        obs = torch.from_numpy(nxt)
    returns, acc = [], torch.zeros(len(env.envs))
    for r in reversed(rewards):
        acc = r + cfg.gamma * acc
        returns.insert(0, acc)
    return torch.stack(logps), torch.stack(values), torch.stack(returns), entropy / cfg.horizon, torch.stack(rewards)


@torch.no_grad()
def evaluate(policy, cfg, n=24):
    total = []
    for k in range(n):
        env = DriveEnv()
        env.srand(90000 + k)
        obs, ret = env.c_reset(), 0.0
        for _ in range(cfg.horizon):
            dist, _ = policy(torch.from_numpy(obs)[None])
            obs, reward = env.step(dist.mean[0].numpy())
            ret += float(reward)
        total.append(ret)
    return float(np.mean(total)), float(np.std(total))


def train(cfg):
    policy, env = Policy(), VecEnv(cfg.num_envs)
    opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    curve = []
    for update in range(cfg.updates):
        logp, value, ret, entropy, rewards = rollout(env, policy, cfg, cfg.seed + update)
        adv = (ret - value).detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        loss = -(logp * adv).mean() + 0.25 * (ret - value).pow(2).mean() - cfg.entropy * entropy
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        opt.step()
        curve.append((update, float(rewards.sum(0).mean()), float(loss.detach())))
        if update % 15 == 0:
            logger.info("update %3d return %.4f loss %.4f", *curve[-1])
    return policy, curve


def main():
    cfg = DriveConfig()
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=cfg.seed)
    p.add_argument("--updates", type=int, default=cfg.updates)
    p.add_argument("--num-envs", type=int, default=cfg.num_envs)
    for k, v in vars(p.parse_args()).items():
        setattr(cfg, k, v)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    cfg.out.mkdir(parents=True, exist_ok=True)
    t0 = time.time()
    policy, curve = train(cfg)
    logger.info("trained in %.1fs (pid %d)", time.time() - t0, os.getpid())
    mean, std = evaluate(policy, cfg)
    np.savetxt(cfg.out / "curve.csv", np.array(curve), delimiter=",", fmt="%.7f", header="update,return,loss")
    torch.save(policy.state_dict(), cfg.out / "policy.pt")
    result = {"eval_return": round(mean, 6), "eval_std": round(std, 6), "last_return": round(curve[-1][1], 6)}
    (cfg.out / "result.json").write_text(json.dumps(result))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
