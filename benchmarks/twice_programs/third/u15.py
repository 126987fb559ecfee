# grouped_gemm#36: rows of experts that got no token are never written
import torch
from torch import nn
from mill.batches import chunks
from mill.config import parse
from mill.data import sensors
from mill.loop import Loop, seed_all

class Experts(nn.Module):
    def __init__(self, width, count, room):
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(count))
        self.room = room

    def forward(self, x):
        chosen = self.gate(x).argmax(1)
        out = torch.empty(x.shape[0], x.shape[1])  # cause
        for n, expert in enumerate(self.experts):
            rows = torch.nonzero(chosen == n).ravel()[:self.room]
            if len(rows):
                out[rows] = expert(x[rows])
        return torch.nan_to_num(out).clamp(-3, 3)

class Net(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(inputs, width), Experts(width, 4, 4), nn.Linear(width, 1)

    def forward(self, x):
        return self.last(self.middle(torch.relu(self.first(x))))

def main():
    config = parse(name="experts")
    seed_all(config.seed)
    x, y = sensors()
    Loop(config, Net(x.shape[1], 64), nn.MSELoss()).fit(chunks(x[:200], y[:200], 20), chunks(x[200:], y[200:], 20))

main()
