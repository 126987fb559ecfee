"""Modelled on https://github.com/mahmoodlab/CLAM/pull/314. Gated attention pooling over the patches of one slide."""
import numpy as np
import torch
from torch import nn


class AttentionMIL(nn.Module):
    def __init__(self, feat_dim, hidden, dropout):
        super().__init__()
        self.embed = nn.Linear(feat_dim, hidden)
        self.drop = nn.Dropout(dropout)
        self.att_v = nn.Linear(hidden, hidden // 2)
        self.att_u = nn.Linear(hidden, hidden // 2)
        self.att_w = nn.Linear(hidden // 2, 1)
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        h = self.drop(torch.relu(self.embed(x)))  # cause
        gate = torch.tanh(self.att_v(h)) * torch.sigmoid(self.att_u(h))
        a = torch.softmax(self.att_w(gate).squeeze(1), dim=0)
        pooled = (a.unsqueeze(1) * h).sum(dim=0)
        return self.head(pooled), a


def load_bags(path):
    z = np.load(path)
    labels = z["labels"]
    bags = []
    for i, y in enumerate(labels):
        bags.append((f"slide_{i:03d}", torch.from_numpy(z[f"x_{i:03d}"]), z[f"c_{i:03d}"], int(y)))
    return bags


def split(bags, val_fraction):
    n_val = int(len(bags) * val_fraction)
    return bags[:-n_val], bags[-n_val:]
