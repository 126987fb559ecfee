"""Reinforcement learning with Stable-Baselines3: tables with fps and time_elapsed, Monitor files, csv and json logs, saved zip."""

import os
import sys
import time

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

ENV = "Walk-v0"


class Walk(gym.Env):
    """Walk along a line to a goal that the seed draws."""

    def __init__(self, size=9):
        self.size = size
        self.observation_space = spaces.Box(-1, 1, (3,), np.float32)
        self.action_space = spaces.Discrete(3)

    def _obs(self):
        return np.array([self.at / self.size, self.goal / self.size, self.t / 30], np.float32) * 2 - 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = self.size // 2, 0
        self.goal = int(self.np_random.integers(0, self.size))
        return self._obs(), {}

    def step(self, action):
        self.t += 1
        self.at = int(np.clip(self.at + int(action) - 1, 0, self.size - 1))
        done = self.at == self.goal
        return self._obs(), 1.0 if done else -0.05, done, self.t >= 30, {}


def make(seed, folder):
    def thunk():
        env = Monitor(Walk(), os.path.join(folder, f"env{seed}"))
        env.reset(seed=seed)
        return env

    return thunk


def main():
    set_random_seed(5)
    torch.set_num_threads(1)
    log_path = os.path.join("logs", "ppo", f"{ENV}_1")
    os.makedirs(log_path)
    env = VecNormalize(DummyVecEnv([make(1, log_path), make(2, log_path)]), norm_reward=False)
    evals = VecNormalize(DummyVecEnv([lambda: Monitor(Walk())]), training=False, norm_reward=False)
    evals.seed(77)
    start = time.time()
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=3, learning_rate=3e-3, seed=5, verbose=1, policy_kwargs={"net_arch": [16]})
    model.set_logger(configure(log_path, ["stdout", "csv", "json", "log"]))
    model.learn(
        512,
        callback=[
            CheckpointCallback(256, log_path, name_prefix="rl_model"),
            EvalCallback(evals, n_eval_episodes=5, eval_freq=128, log_path=log_path, best_model_save_path=log_path, verbose=1),
        ],
        log_interval=1,
    )
    model.save(os.path.join(log_path, ENV))
    env.save(os.path.join(log_path, "vecnormalize.pkl"))
    mean, std = evaluate_policy(model, evals, n_eval_episodes=10)
    print(f"mean_reward={mean:.3f} +/- {std:.3f}")
    print(f"Saved to {log_path}; total {time.time() - start:.1f}s at {512 / (time.time() - start):.0f} fps, pid {os.getpid()}", file=sys.stderr)


if __name__ == "__main__":
    main()
