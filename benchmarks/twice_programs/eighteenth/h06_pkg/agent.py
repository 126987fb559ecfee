"""Tabular Q-learning with an epsilon schedule."""
import numpy as np


class QAgent:
    def __init__(self, n_states, n_actions, seed, lr=0.2, gamma=0.97, eps=(0.6, 0.05)):
        self.q = np.zeros((n_states, n_actions))
        self.rng = np.random.default_rng(seed)
        self.lr = lr
        self.gamma = gamma
        self.eps_start, self.eps_end = eps

    def epsilon(self, progress):
        return self.eps_start + (self.eps_end - self.eps_start) * min(1.0, progress / 0.7)

    def act(self, state, eps):
        if self.rng.random() < eps:
            return int(self.rng.integers(self.q.shape[1]))
        return int(self.q[state].argmax())

    def update(self, s, a, r, s2, done):
        target = r if done else r + self.gamma * self.q[s2].max()
        self.q[s, a] += self.lr * (target - self.q[s, a])

    def save(self, path):
        np.save(path, self.q)
