"""Action values that are linear in fixed features."""
import numpy as np


class LinearPolicy:
    def __init__(self, obs_dim, actions, features, seed):
        rng = np.random.default_rng(seed)
        self.proj = rng.normal(0, 1.0, (obs_dim, features))
        self.phase = rng.uniform(0, 2 * np.pi, features)
        self.w = np.zeros((features, actions))

    def phi(self, obs):
        return np.cos(obs @ self.proj + self.phase) / np.sqrt(len(self.phase))

    def q(self, obs):
        return self.phi(obs) @ self.w

    def act(self, obs):
        return int(self.q(obs[None])[0].argmax())

    def update(self, o, a, r, n, d, gamma, lr):
        target = r + gamma * (1 - d) * self.q(n).max(1)
        f = self.phi(o)
        error = target - (f @ self.w)[np.arange(len(a)), a]
        for action in range(self.w.shape[1]):
            rows = a == action
            self.w[:, action] += lr * f[rows].T @ error[rows] / len(a) * self.w.shape[0]
        return float((error**2).mean())
