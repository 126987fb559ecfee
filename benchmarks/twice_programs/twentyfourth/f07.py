"""Guidance of a small lander by policy gradient with several rollout workers.

The environment is a one dimensional landing problem with wind.  Workers collect
episodes with a linear Gaussian policy, a learner updates the policy by
REINFORCE with a baseline, and the learning curve and the final policy are saved.

Modelled on: https://discuss.ray.io/t/reproducible-training-setting-seeds-for-all-workers-environments/1051
"""
import csv
import json
import logging

import gymnasium as gym
import numpy as np
from gymnasium import spaces

log = logging.getLogger("guidance")


class LandingEnv(gym.Env):
    """State: height, speed, fuel.  Action: thrust."""

    metadata = {"render_modes": []}

    def __init__(self, config=None):
        config = config or {}
        self.dt = config.get("dt", 0.2)
        self.wind = config.get("wind", 0.6)
        self.observation_space = spaces.Box(-np.inf, np.inf, shape=(3,), dtype=np.float32)
        self.action_space = spaces.Box(0.0, 4.0, shape=(1,), dtype=np.float32)
        self.state = None
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        height = self.np_random.uniform(8.0, 12.0)  # cause
        speed = self.np_random.uniform(-2.0, 0.0)
        self.state = np.array([height, speed, 1.0])
        self.steps = 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        thrust = float(np.clip(action, 0.0, 4.0)[0])
        height, speed, fuel = self.state
        thrust = thrust if fuel > 0 else 0.0
        gust = self.wind * self.np_random.normal()
        speed += (thrust - 1.6 + gust) * self.dt
        height += speed * self.dt
        fuel = max(0.0, fuel - 0.01 * thrust)
        self.state = np.array([height, speed, fuel])
        self.steps += 1
        landed = height <= 0.0
        reward = -0.02 * thrust
        if landed:
            reward += 10.0 - 3.0 * abs(speed)
        return self.state.astype(np.float32), reward, landed, self.steps >= 120, {}


class Policy:
    """Linear Gaussian policy over simple features."""

    def __init__(self, sigma=0.5):
        self.weights = np.array([0.8, -0.1, -0.6, 0.0])
        self.sigma = sigma

    @staticmethod
    def features(obs):
        height, speed, fuel = obs
        return np.array([1.0, height / 10.0, speed, fuel])

    def act(self, obs, rng):
        phi = self.features(obs)
        mean = float(self.weights @ phi)
        action = mean + self.sigma * rng.normal()
        return action, (action - mean) / self.sigma ** 2 * phi


class RolloutWorker:
    def __init__(self, index, seed, env_config):
        self.index = index
        self.env = LandingEnv(env_config)
        self.rng = np.random.default_rng([seed, index])

    def episode(self, policy):
        obs, _ = self.env.reset()  # cause
        rewards, grads = [], []
        done = False
        while not done:
            action, grad = policy.act(obs, self.rng)
            obs, reward, landed, late, _ = self.env.step(np.array([action]))
            rewards.append(reward)
            grads.append(grad)
            done = landed or late
        return np.array(rewards), np.array(grads)


class Learner:
    def __init__(self, policy, rate=0.004):
        self.policy = policy
        self.rate = rate
        self.baseline = 0.0

    def update(self, episodes):
        returns = np.array([r.sum() for r, _ in episodes])
        step = np.zeros_like(self.policy.weights)
        for total, (_, grads) in zip(returns, episodes):
            step += (total - self.baseline) * grads.sum(axis=0)
        step /= len(episodes)
        norm = np.linalg.norm(step)
        if norm > 10:
            step *= 10 / norm
        self.policy.weights = self.policy.weights + self.rate * step
        self.baseline = 0.9 * self.baseline + 0.1 * returns.mean()
        return returns.mean(), returns.std()


def train(seed=3, workers=4, iterations=60, per_worker=5):
    policy = Policy()
    learner = Learner(policy)
    crew = [RolloutWorker(i, seed, {"dt": 0.2, "wind": 0.6}) for i in range(workers)]
    curve = []
    for iteration in range(iterations):
        episodes = [worker.episode(policy) for worker in crew for _ in range(per_worker)]
        mean, spread = learner.update(episodes)
        curve.append((iteration, mean, spread))
        if iteration % 10 == 9:
            log.info("iteration %d done", iteration + 1)
            print(f"iteration {iteration + 1:3d}: return {mean:8.4f} +- {spread:.4f}")
    return policy, curve


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    policy, curve = train()
    with open("curve.csv", "w", newline="") as handle:
        out = csv.writer(handle)
        out.writerow(["iteration", "mean", "std"])
        out.writerows((i, f"{m:.6f}", f"{s:.6f}") for i, m, s in curve)
    with open("policy.json", "w") as handle:
        json.dump({"weights": [round(float(w), 8) for w in policy.weights], "sigma": policy.sigma}, handle)
    print("weights:", np.round(policy.weights, 5))
    print(f"best mean return: {max(m for _, m, _ in curve):.4f}")


if __name__ == "__main__":
    main()
