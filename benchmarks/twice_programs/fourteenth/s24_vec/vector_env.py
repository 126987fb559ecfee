import numpy as np
from gymnasium import spaces


def batch_space(space, n):
    if isinstance(space, spaces.Discrete):
        return spaces.MultiDiscrete(np.full(n, space.n))
    if isinstance(space, spaces.Box):
        return spaces.Box(np.stack([space.low] * n), np.stack([space.high] * n), dtype=space.dtype)
    raise NotImplementedError(type(space).__name__)


class VectorEnv:
    """Steps several environments in lockstep and resets those that have ended."""

    def __init__(self, env_fns):
        self.envs = [fn() for fn in env_fns]
        self.num_envs = len(self.envs)
        self.single_action_space = self.envs[0].action_space
        self.single_observation_space = self.envs[0].observation_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)  # cause
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.lengths = np.zeros(self.num_envs, int)
        self.finished = []

    def reset(self, seed=None):
        out = []
        for k, env in enumerate(self.envs):
            obs, _ = env.reset(seed=None if seed is None else seed + k)
            out.append(obs)
        return np.stack(out)

    def step(self, actions):
        observations, rewards, dones, final = [], [], [], []
        for k, (env, action) in enumerate(zip(self.envs, actions)):
            obs, reward, terminated, truncated, _ = env.step(int(action))
            self.lengths[k] += 1
            final.append(obs)
            if terminated or truncated:
                self.finished.append(int(self.lengths[k]))
                self.lengths[k] = 0
                obs, _ = env.reset()
            observations.append(obs)
            rewards.append(reward)
            dones.append(terminated)
        return np.stack(observations), np.array(rewards), np.array(dones), np.stack(final)

    def close(self):
        for env in self.envs:
            env.close()
