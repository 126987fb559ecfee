import torch
from torch import nn

class Mlp(nn.Module):
    def __init__(self, inputs, width, outputs, depth=2, drop=0.1):
        super().__init__()
        layers = []
        for n in range(depth):
            layers += [nn.Linear(inputs if n == 0 else width, width), nn.ReLU(), nn.Dropout(drop)]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(width, outputs)

    def forward(self, x):
        return self.head(self.body(x))

class Cnn(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.head = nn.Linear(54, classes)

    def forward(self, x):
        return self.head(self.features(x))

class Bag(nn.Module):
    def __init__(self, words, width=12, classes=3):
        super().__init__()
        self.table = nn.EmbeddingBag(words, width)
        self.head = Mlp(width, width, classes, depth=1)

    def forward(self, ids):
        return self.head(self.table(ids))
