"""Tabular reinforcement learning on parallel environments.

Modelled on https://github.com/openai/gym/issues/2680
Learns a cart-pole controller from a vector of environments and evaluates it.
"""
import argparse
import json
import logging
import random
import time
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np
from torch.utils.tensorboard import SummaryWriter

from s24_vec import QTable, VectorEnv

log = logging.getLogger("qlearn")


@dataclass
class TrainConfig:
    env_id: str = "CartPole-v1"
    seed: int = 1
    num_envs: int = 6
    warmup: int = 200
    steps: int = 4000
    epsilon: float = 0.4
    epsilon_end: float = 0.02
    eval_episodes: int = 10
    run_dir: str = "runs"


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)


def make_env(env_id, seed):
    def thunk():
        env = gym.make(env_id)
        env.reset(seed=seed)
        env.action_space.seed(seed)
        env.observation_space.seed(seed)
        return env

    return thunk


class Schedule:
    def __init__(self, start, end, steps):
        self.start, self.end, self.steps = start, end, steps

    def __call__(self, step):
        share = min(1.0, step / self.steps)
        return self.start + share * (self.end - self.start)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.envs = VectorEnv([make_env(cfg.env_id, cfg.seed + k) for k in range(cfg.num_envs)])
        self.agent = QTable([-2.4, -2.5, -0.21, -2.5], [2.4, 2.5, 0.21, 2.5], (4, 4, 8, 8),
                            int(self.envs.single_action_space.n))
        self.epsilon = Schedule(cfg.epsilon, cfg.epsilon_end, cfg.steps)
        self.curve = []

    def actions(self, obs, step):
        explore = self.envs.action_space.sample()  # cause
        if step < self.cfg.warmup:
            return explore
        greedy = self.agent.act(obs)
        return np.where(np.random.rand(len(greedy)) < self.epsilon(step), explore, greedy)

    def train(self, writer):
        obs = self.envs.reset(seed=self.cfg.seed)
        for step in range(self.cfg.steps):
            actions = self.actions(obs, step)
            nxt, rewards, dones, final = self.envs.step(actions)
            self.agent.update(obs, actions, rewards, final, dones)
            obs = nxt
            if (step + 1) % 500 == 0:
                recent = float(np.mean(self.envs.finished[-40:]))
                self.curve.append(recent)
                writer.add_scalar("episode_length", recent, step)
                log.info("step %d mean length %.1f", step + 1, recent)
        return self.agent

    def evaluate(self):
        env = gym.make(self.cfg.env_id)
        lengths = []
        for k in range(self.cfg.eval_episodes):
            obs, _ = env.reset(seed=10_000 + k)
            for t in range(500):
                action = int(self.agent.act(obs[None])[0])
                obs, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    break
            lengths.append(t + 1)
        env.close()
        return lengths


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=TrainConfig.steps)
    ap.add_argument("--seed", type=int, default=TrainConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = TrainConfig(steps=args.steps, seed=args.seed)
    seed_all(cfg.seed)
    trainer = Trainer(cfg)
    t0 = time.perf_counter()
    with SummaryWriter(cfg.run_dir) as writer:
        trainer.train(writer)
    log.info("trained in %.2f s", time.perf_counter() - t0)
    lengths = trainer.evaluate()
    trainer.envs.close()
    np.save("qtable.npy", trainer.agent.q)
    result = {"curve": trainer.curve, "eval": lengths, "mean": float(np.mean(lengths))}
    Path("result.json").write_text(json.dumps(result))
    print("curve", np.round(trainer.curve, 3).tolist())
    print("evaluation", lengths)
    print(f"q mean {trainer.agent.q.mean():.8f}")


if __name__ == "__main__":
    main()
