"""Random-warmup policy search on a vectorised reaching task.

A small batched environment in the style of a C++ pool: all instances step at
once, and the action space of a single instance is exposed for sampling. The
agent collects a warmup buffer with sampled actions, fits a linear dynamics and
reward model, and improves a linear policy by the cross-entropy method.

Modelled on: https://github.com/sail-sg/envpool/issues/207
"""
import argparse
import csv
import json
import random
import time

import numpy as np
from gymnasium import spaces


class PoolSpec:
    """Static description of the task."""

    def __init__(self, num_envs, seed, max_episode_steps=60):
        self.num_envs = num_envs
        self.seed = seed
        self.max_episode_steps = max_episode_steps
        self.obs_dim = 6
        self.act_dim = 2

    def action_array_spec(self):
        high = np.ones(self.act_dim, dtype=np.float32)
        return {"low": -high, "high": high, "shape": (self.act_dim,)}

    def observation_array_spec(self):
        high = np.full(self.obs_dim, 5.0, dtype=np.float32)
        return {"low": -high, "high": high, "shape": (self.obs_dim,)}


class ReacherPool:
    """Point masses that have to reach a target; every instance is seeded."""

    def __init__(self, spec):
        self.spec = spec
        self.rng = np.random.default_rng(spec.seed)
        self.steps = np.zeros(spec.num_envs, dtype=int)
        self.pos = np.zeros((spec.num_envs, 2))
        self.vel = np.zeros((spec.num_envs, 2))
        self.target = np.zeros((spec.num_envs, 2))

    @property
    def action_space(self):
        a = self.spec.action_array_spec()
        return spaces.Box(a["low"], a["high"], a["shape"], dtype=np.float32)  # cause

    @property
    def observation_space(self):
        o = self.spec.observation_array_spec()
        return spaces.Box(o["low"], o["high"], o["shape"], dtype=np.float32)

    def _reset_rows(self, rows):
        n = int(rows.sum())
        self.pos[rows] = self.rng.uniform(-1, 1, size=(n, 2))
        self.vel[rows] = 0.0
        self.target[rows] = self.rng.uniform(-1, 1, size=(n, 2))
        self.steps[rows] = 0

    def _observe(self):
        return np.concatenate([self.pos, self.vel, self.target], axis=1)

    def reset(self):
        self._reset_rows(np.ones(self.spec.num_envs, dtype=bool))
        return self._observe()

    def step(self, action):
        action = np.clip(action, -1, 1)
        self.vel = 0.9 * self.vel + 0.1 * action
        self.pos = np.clip(self.pos + 0.2 * self.vel, -2, 2)
        distance = np.linalg.norm(self.pos - self.target, axis=1)
        reward = -distance - 0.01 * (action ** 2).sum(axis=1)
        self.steps += 1
        done = (self.steps >= self.spec.max_episode_steps) | (distance < 0.02)
        self._reset_rows(done)
        return self._observe(), reward, done


def make(num_envs, seed):
    return ReacherPool(PoolSpec(num_envs, seed))


class ReplayBuffer:
    def __init__(self):
        self.rows = []

    def add(self, obs, action, reward, next_obs, done):
        keep = ~done
        self.rows.append((obs[keep], action[keep], reward[keep], next_obs[keep]))

    def arrays(self):
        return [np.concatenate(part) for part in zip(*self.rows)]


def collect_warmup(env, steps):
    """Fill a buffer with uniformly drawn actions."""
    buffer = ReplayBuffer()
    obs = env.reset()
    for _ in range(steps):
        action = np.stack([env.action_space.sample() for _ in range(env.spec.num_envs)])
        next_obs, reward, done = env.step(action)
        buffer.add(obs, action, reward, next_obs, done)
        obs = next_obs
    return buffer


class WorldModel:
    """Ridge regression for the next observation and quadratic features for the reward."""

    def fit(self, obs, action, reward, next_obs, ridge=1e-3):
        x = np.concatenate([obs, action, np.ones((len(obs), 1))], axis=1)
        gram = x.T @ x + ridge * np.eye(x.shape[1])
        self.dynamics = np.linalg.solve(gram, x.T @ next_obs)
        q = self.features(obs, action)
        self.reward = np.linalg.solve(q.T @ q + ridge * np.eye(q.shape[1]), q.T @ reward)
        return float(np.mean((x @ self.dynamics - next_obs) ** 2)), float(np.mean((q @ self.reward - reward) ** 2))

    @staticmethod
    def features(obs, action):
        delta = obs[:, :2] - obs[:, 4:6]
        return np.column_stack([np.ones(len(obs)), delta ** 2, np.abs(delta), action ** 2, obs[:, 2:4] ** 2])

    def rollout(self, policy, obs, horizon):
        total = np.zeros(len(obs))
        for _ in range(horizon):
            action = np.clip(obs @ policy, -1, 1)
            total += self.features(obs, action) @ self.reward
            obs = np.concatenate([obs, action, np.ones((len(obs), 1))], axis=1) @ self.dynamics
        return total.mean()


def cross_entropy_search(model, start, rng, iterations=12, population=60, horizon=25):
    mean, std = np.zeros((6, 2)), np.ones((6, 2))
    for i in range(iterations):
        candidates = mean + std * rng.normal(size=(population, 6, 2))
        scores = np.array([model.rollout(c, start, horizon) for c in candidates])
        elite = candidates[np.argsort(-scores, kind="stable")[:10]]
        mean, std = elite.mean(axis=0), elite.std(axis=0) + 0.02
        print(f"iteration {i:2d} best model return {scores.max():.5f}")
    return mean


def evaluate(policy, seed, episodes=40):
    env = make(episodes, seed)
    obs, total = env.reset(), np.zeros(episodes)
    for _ in range(env.spec.max_episode_steps):
        obs, reward, _ = env.step(np.clip(obs @ policy, -1, 1))
        total += reward
    return float(total.mean()), float(total.std())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--num-envs", type=int, default=12)
    parser.add_argument("--warmup-steps", type=int, default=250)
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)

    started = time.time()
    env = make(args.num_envs, args.seed)
    env.action_space.seed(args.seed)
    buffer = collect_warmup(env, args.warmup_steps)
    obs, action, reward, next_obs = buffer.arrays()
    model = WorldModel()
    dyn_error, rew_error = model.fit(obs, action, reward, next_obs)
    print(f"{len(obs)} transitions, dynamics mse {dyn_error:.3e}, reward mse {rew_error:.6f}")
    policy = cross_entropy_search(model, obs[:64], rng)
    mean, std = evaluate(policy, seed=args.seed + 1000)
    print(f"return {mean:.5f} +- {std:.5f}")
    with open("policy.csv", "w", newline="") as f:
        csv.writer(f).writerows([[f"{v:.8f}" for v in row] for row in policy])
    with open("metrics.json", "w") as f:
        json.dump({"return": mean, "std": std, "reward_mse": rew_error, "transitions": len(obs),
                   "mean_action": action.mean(axis=0).tolist()}, f, indent=1)
    with open("run.log", "a") as f:
        f.write(f"finished after {time.time() - started:.2f} s\n")


if __name__ == "__main__":
    main()
