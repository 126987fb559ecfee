"""Policy network and the rehearsal buffer."""
import torch
from torch import nn


class MLPPolicy(nn.Module):
    def __init__(self, obs_dim=12, act_dim=4, hidden=96, dropout=0.1):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(),
        )
        self.head = nn.Linear(hidden, act_dim)

    def forward(self, obs):
        return self.head(self.trunk(obs))


class RehearsalBuffer:
    """Keeps the first ``capacity`` pairs of every learned task."""

    def __init__(self, capacity=64):
        self.capacity = capacity
        self.items = []

    def add(self, x, y):
        self.items.append((x[: self.capacity].clone(), y[: self.capacity].clone()))

    def sample(self, n, generator):
        if not self.items:
            return None
        x = torch.cat([i[0] for i in self.items])
        y = torch.cat([i[1] for i in self.items])
        idx = torch.randint(len(x), (n,), generator=generator)
        return x[idx], y[idx]
