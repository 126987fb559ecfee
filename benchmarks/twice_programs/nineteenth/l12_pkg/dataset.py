"""Offline data: transitions logged by a hand-made controller."""
import gymnasium as gym
import numpy as np


def controller(obs, rng, noise):
    x, v, angle, w = obs
    action = int(angle + 0.35 * w + 0.04 * x + 0.09 * v > 0)
    return action if rng.random() > noise else int(rng.integers(2))


def collect(env_id, n_steps, noise, seed):
    env = gym.make(env_id)
    rng = np.random.default_rng(seed)
    obs_list, act_list, cost_list = [], [], []
    obs, _ = env.reset(seed=seed)
    for _ in range(n_steps):
        action = controller(obs, rng, noise)
        obs_list.append(obs)
        act_list.append(action)
        obs, _, terminated, truncated, _ = env.step(action)
        cost_list.append(float(abs(obs[0]) > 0.5))
        if terminated or truncated:
            obs, _ = env.reset()
    env.close()
    return {
        "observations": np.array(obs_list, dtype=np.float32),
        "actions": np.array(act_list, dtype=np.int64),
        "costs": np.array(cost_list, dtype=np.float32),
    }
