"""Train an A2C agent for inventory control on randomly generated demand
scenarios with Stable-Baselines3 and evaluate it on fixed scenarios.

Modelled on: https://github.com/DLR-RM/stable-baselines3/issues/973
"""
import json
import os
import random

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import set_random_seed

SEED = 1
TOTAL_TIMESTEPS = 2400


class ScenarioGenerator:
    """Daily demand with a weekly pattern, a trend and promotions."""

    def __init__(self, horizon, rng):
        self.horizon = horizon
        self.rng = rng

    def draw(self):
        days = np.arange(self.horizon)
        base = self.rng.uniform(6, 12)
        weekly = 1 + 0.4 * np.sin(2 * np.pi * (days + self.rng.integers(0, 7)) / 7)
        trend = 1 + self.rng.uniform(-0.01, 0.01) * days
        demand = self.rng.poisson(base * weekly * trend)
        for start in self.rng.integers(0, self.horizon - 3, size=2):
            demand[start:start + 3] += self.rng.integers(3, 9)
        return demand.astype(np.float32)


class InventoryEnv(gym.Env):
    """Order stock every day; orders arrive two days later."""

    lead_time = 2
    capacity = 60.0

    def __init__(self, horizon=40, scenarios=None):
        super().__init__()
        self.action_space = spaces.Discrete(6)
        self.observation_space = spaces.Box(0.0, 2.0, shape=(self.lead_time + 3,), dtype=np.float32)
        self.horizon = horizon
        self.scenarios = scenarios
        self.generator = ScenarioGenerator(horizon, np.random.default_rng())  # cause
        self.episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.scenarios is not None:
            self.demand = self.scenarios[self.episode % len(self.scenarios)]
        else:
            self.demand = self.generator.draw()
        self.episode += 1
        self.day = 0
        self.stock = 20.0
        self.pipeline = [0.0] * self.lead_time
        self.last_demand = 10.0
        return self._observe(), {}

    def _observe(self):
        values = [self.stock / self.capacity, self.last_demand / 20.0, (self.day % 7) / 7.0]
        values += [p / 30.0 for p in self.pipeline]
        return np.clip(np.array(values, dtype=np.float32), 0.0, 2.0)

    def step(self, action):
        self.pipeline.append(5.0 * int(action))
        self.stock = min(self.stock + self.pipeline.pop(0), self.capacity)
        demand = float(self.demand[self.day])
        sold = min(self.stock, demand)
        self.stock -= sold
        reward = 1.0 * sold - 0.08 * self.stock - 0.6 * (demand - sold) - 0.3 * (action > 0)
        self.last_demand = demand
        self.day += 1
        return self._observe(), float(reward) / 10.0, self.day >= self.horizon, False, {}


class ReturnLog(BaseCallback):
    def __init__(self):
        super().__init__()
        self.rows = []

    def _on_step(self):
        for info in self.locals["infos"]:
            if "episode" in info:
                self.rows.append({"timestep": self.num_timesteps, "return": round(float(info["episode"]["r"]), 4)})
        return True


def evaluate(model, scenarios):
    env = InventoryEnv(scenarios=scenarios)
    returns, orders = [], []
    for _ in range(len(scenarios)):
        obs, _ = env.reset()
        done, total = False, 0.0
        while not done:
            action, _ = model.predict(obs, deterministic=True)
            obs, reward, done, _, _ = env.step(action)
            total += reward
            orders.append(int(action))
        returns.append(total)
    return returns, np.bincount(orders, minlength=6).tolist()


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    set_random_seed(SEED)
    torch.set_num_threads(1)

    held_out = ScenarioGenerator(40, np.random.default_rng(2022))
    scenarios = [held_out.draw() for _ in range(10)]

    env = Monitor(InventoryEnv())
    model = A2C("MlpPolicy", env, seed=SEED, n_steps=16, learning_rate=1e-3, device="cpu",
                policy_kwargs={"net_arch": [32, 32]})
    before, _ = evaluate(model, scenarios)
    log = ReturnLog()
    model.learn(total_timesteps=TOTAL_TIMESTEPS, callback=log)
    after, orders = evaluate(model, scenarios)

    os.makedirs("runs/a2c", exist_ok=True)
    with open("runs/a2c/training.json", "w") as handle:
        json.dump(log.rows, handle, indent=1)
    with open("runs/a2c/evaluation.json", "w") as handle:
        json.dump({"before": round(float(np.mean(before)), 4), "after": round(float(np.mean(after)), 4),
                   "returns": [round(float(r), 4) for r in after], "orders": orders}, handle, indent=2)
    print(f"episodes {len(log.rows)}")
    for row in log.rows[::20]:
        print(f"  step {row['timestep']:5d} return {row['return']:8.3f}")
    print(f"evaluation {np.mean(before):.4f} -> {np.mean(after):.4f}, orders {orders}")


if __name__ == "__main__":
    main()
