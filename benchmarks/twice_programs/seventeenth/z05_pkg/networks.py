"""Fully connected networks with an optional shared trunk."""
from torch import nn


class Trunk(nn.Module):
    def __init__(self, hidden, depth):
        super().__init__()
        layers = [nn.Linear(1, hidden), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(hidden, hidden), nn.Tanh()]
        self.body = nn.Sequential(*layers)

    def forward(self, t):
        return self.body(t)


class Head(nn.Module):
    """One unknown: the trunk followed by a private layer."""

    def __init__(self, trunk, hidden):
        super().__init__()
        self.trunk = trunk
        self.private = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, t):
        return self.private(self.trunk(t))


def build_networks(hidden, depth):
    trunk = Trunk(hidden, depth)
    return [Head(trunk, hidden), Head(trunk, hidden)]
