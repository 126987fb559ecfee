import numpy as np


class QTable:
    def __init__(self, low, high, bins, actions, lr=0.15, gamma=0.98):
        self.edges = [np.linspace(lo, hi, b + 1)[1:-1] for lo, hi, b in zip(low, high, bins)]
        self.q = np.zeros((*bins, actions))
        self.lr = lr
        self.gamma = gamma

    def index(self, obs):
        return tuple(np.digitize(obs[:, d], e) for d, e in enumerate(self.edges))

    def act(self, obs):
        return self.q[self.index(obs)].argmax(-1)

    def update(self, obs, actions, rewards, nxt, dones):
        cells = np.stack(self.index(obs), axis=1)
        value = self.q[self.index(nxt)].max(-1)
        target = rewards + self.gamma * value * (~dones)
        for cell, action, goal in zip(cells, actions, target):
            key = (*cell, int(action))
            self.q[key] += self.lr * (goal - self.q[key])
