"""GraphSAGE with mean aggregation over a sampled block."""
import torch
from torch import nn


class SageLayer(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.own = nn.Linear(cin, cout)
        self.near = nn.Linear(cin, cout, bias=False)

    def forward(self, h_self, h_near):
        return self.own(h_self) + self.near(h_near)


class SageNet(nn.Module):
    def __init__(self, features, hidden, classes, layers=2, dropout=0.2):
        super().__init__()
        sizes = [features] + [hidden] * layers
        self.layers = nn.ModuleList(SageLayer(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x, block):
        states = [x[torch.from_numpy(h)] for h in block.hops]
        for layer in self.layers:
            merged = []
            for depth in range(len(states) - 1):
                n = len(states[depth])
                near = states[depth + 1].view(n, -1, states[depth + 1].shape[1]).mean(dim=1)
                merged.append(self.dropout(torch.relu(layer(states[depth], near))))
            states = merged
        return self.head(states[0]), states[0]
