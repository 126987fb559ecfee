"""The atomic convolution tower and the full model."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    """Per-atom MLP followed by a sum over the atoms."""

    def __init__(self, n_in, hidden=(32, 16), dropouts=(0.3, 0.3)):
        super().__init__()
        sizes = (n_in,) + tuple(hidden)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(sizes[-1], 1)
        self.dropouts = dropouts

    def forward(self, x):
        for layer, dropout in zip(self.layers, self.dropouts):
            x = torch.relu(layer(x))
            if dropout > 0:
                x = F.dropout(x, dropout)  # cause
        return self.out(x).mean(dim=1)


class AtomicConv(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.norm = nn.LayerNorm(n_in)
        self.complex = Tower(n_in)
        self.protein = Tower(n_in)
        self.ligand = Tower(n_in)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, frag1, frag2, both):
        e = self.complex(self.norm(both)) - self.protein(self.norm(frag1)) - self.ligand(self.norm(frag2))
        return e.squeeze(-1) + self.bias


class Scaler:
    def __init__(self, y):
        self.mean, self.std = float(y.mean()), float(y.std())

    def forward(self, y):
        return (y - self.mean) / self.std

    def inverse(self, y):
        return y * self.std + self.mean
