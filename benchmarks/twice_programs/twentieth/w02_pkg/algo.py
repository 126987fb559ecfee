"""Discrete conservative Q-learning with a double-Q target."""
import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class CQLConfig:
    batch_size: int = 64
    gamma: float = 0.99
    learning_rate: float = 3e-4
    alpha: float = 1.0
    target_update_interval: int = 200


class DiscreteCQL:
    def __init__(self, obs_size, n_actions, config, seed):
        self.config = config
        self.q = nn.Sequential(nn.Linear(obs_size, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(),
                               nn.Linear(48, n_actions))
        self.target = copy.deepcopy(self.q)
        self.optim = torch.optim.Adam(self.q.parameters(), lr=config.learning_rate)
        self.rng = np.random.default_rng(seed)
        self.grad_step = 0

    def fit_epoch(self, dataset, n_steps):
        losses = []
        for _ in range(n_steps):
            index = self.rng.integers(0, len(dataset), self.config.batch_size)
            losses.append(self._update(dataset.batch(index)))
        return float(np.mean(losses))

    def _update(self, batch):
        obs, actions, rewards, next_obs, terminals = map(torch.from_numpy, batch)
        with torch.no_grad():
            best = self.q(next_obs).argmax(1, keepdim=True)
            bootstrap = self.target(next_obs).gather(1, best).squeeze(1)
            y = rewards + self.config.gamma * (1 - terminals) * bootstrap
        values = self.q(obs)
        chosen = values.gather(1, actions[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(chosen, y)
        loss = loss + self.config.alpha * (torch.logsumexp(values, 1) - chosen).mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        self.grad_step += 1
        if self.grad_step % self.config.target_update_interval == 0:
            self.target.load_state_dict(self.q.state_dict())
        return float(loss.detach())

    @torch.no_grad()
    def predict(self, obs):
        x = torch.as_tensor(np.asarray(obs, dtype=np.float32))[None]
        return int(self.q(x).argmax(1).item())

    @torch.no_grad()
    def td_error(self, batch):
        obs, actions, rewards, next_obs, terminals = map(torch.from_numpy, batch)
        y = rewards + self.config.gamma * (1 - terminals) * self.target(next_obs).max(1).values
        chosen = self.q(obs).gather(1, actions[:, None]).squeeze(1)
        return float(((chosen - y) ** 2).mean())

    def state_dict(self):
        return self.q.state_dict()
