"""https://github.com/DLR-RM/stable-baselines3/issues/1480 - 'Seeded model produces varying results': the model and its
training environment are seeded, the evaluation environment of EvalCallback is not."""
import json
import os
import time

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import set_random_seed

SEED = 64


class Reservoir(gym.Env):
    """Keep the water level of a dam near a target while inflow is random."""

    def __init__(self, horizon=60):
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Box(-10.0, 10.0, (3,), np.float32)
        self.horizon = horizon

    def _obs(self):
        return np.array([self.level, self.inflow, self.t / self.horizon], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.level = float(self.np_random.normal(0, 1.5))
        self.inflow = float(self.np_random.gamma(2.0, 0.5))
        self.t = 0
        return self._obs(), {}

    def step(self, action):
        self.level = float(np.clip(self.level + self.inflow - 0.75 * action, -9, 9))
        self.inflow = float(0.7 * self.inflow + 0.3 * self.np_random.gamma(2.0, 0.5))
        self.t += 1
        reward = -abs(self.level) - 0.05 * action
        return self._obs(), reward, False, self.t >= self.horizon, {}


class Stopwatch(BaseCallback):
    def _on_training_start(self):
        self.t0 = time.time()

    def _on_step(self):
        if self.n_calls % 1000 == 0:
            print(f"{self.num_timesteps} steps, {self.num_timesteps / (time.time() - self.t0):.0f} per second")
        return True


def make_env(seed=None):
    env = Monitor(Reservoir())
    if seed is not None:
        env.reset(seed=seed)
        env.action_space.seed(seed)
    return env


def main():
    set_random_seed(SEED)
    print("worker", os.getpid())
    train_env = make_env(SEED)
    eval_env = make_env()  # cause
    watcher = EvalCallback(eval_env, best_model_save_path="best", log_path="evals", eval_freq=1000,
                           n_eval_episodes=4, deterministic=True, verbose=0)
    model = A2C("MlpPolicy", train_env, seed=SEED, n_steps=16, learning_rate=1e-3, device="cpu")
    model.learn(5000, callback=[watcher, Stopwatch()])

    best = A2C.load("best/best_model", device="cpu")
    test_env = make_env(SEED + 1)
    mean, std = evaluate_policy(best, test_env, n_eval_episodes=10)
    curve = np.load("evals/evaluations.npz")["results"].mean(1)
    print("evaluation curve", np.round(curve, 2))
    print(f"best model on the test environment: {mean:.3f} +- {std:.3f}")
    with open("scores.json", "w") as f:
        json.dump({"curve": curve.tolist(), "test_mean": float(mean), "test_std": float(std),
                   "chosen_at": int(np.argmax(curve)) * 1000 + 1000}, f, indent=1)


if __name__ == "__main__":
    main()
