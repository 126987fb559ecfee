import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width, dropout=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.drop(self.down(torch.nn.functional.gelu(self.up(self.norm(x)))))

class Net(nn.Module):
    def __init__(self, inputs, outputs, width=16, depth=2, dropout=0.1):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.blocks = nn.Sequential(*(Block(width, dropout) for _ in range(depth)))
        self.last = nn.Linear(width, outputs)

    def forward(self, x):
        return self.last(self.blocks(self.first(x)))
