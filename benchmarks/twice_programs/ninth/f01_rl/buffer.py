"""A ring buffer of transitions with its own generator."""
import numpy as np
import torch


class ReplayBuffer:
    def __init__(self, capacity, obs_dim, seed):
        self.capacity = capacity
        self.obs = np.zeros((capacity, obs_dim), dtype=np.float32)
        self.next_obs = np.zeros((capacity, obs_dim), dtype=np.float32)
        self.act = np.zeros(capacity, dtype=np.int64)
        self.rew = np.zeros(capacity, dtype=np.float32)
        self.done = np.zeros(capacity, dtype=np.float32)
        self.pos = 0
        self.full = False
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.capacity if self.full else self.pos

    def add(self, obs, act, rew, nxt, done):
        for i in range(len(act)):
            p = self.pos
            self.obs[p], self.next_obs[p] = obs[i], nxt[i]
            self.act[p], self.rew[p], self.done[p] = act[i], rew[i], done[i]
            self.pos = (p + 1) % self.capacity
            self.full = self.full or self.pos == 0

    def sample(self, n):
        idx = self.rng.integers(0, len(self), n)
        return {
            "obs": torch.as_tensor(self.obs[idx]),
            "next_obs": torch.as_tensor(self.next_obs[idx]),
            "act": torch.as_tensor(self.act[idx]),
            "rew": torch.as_tensor(self.rew[idx]),
            "done": torch.as_tensor(self.done[idx]),
        }
