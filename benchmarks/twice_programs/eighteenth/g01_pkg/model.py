"""The network."""
from torch import nn

from base import BaseModule


class ANN(BaseModule):
    def __init__(self, n_features=12, hidden=32, dropout=0.2):
        super().__init__(n_features=n_features, hidden=hidden, dropout=dropout)
        self.net = nn.Sequential(
            nn.Linear(n_features, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden // 2),
            nn.ReLU(),
            nn.Linear(hidden // 2, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)
