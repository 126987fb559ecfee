from torch import nn


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, 3, padding=1)
        self.norm = nn.BatchNorm2d(outside)

    def forward(self, x):
        return nn.functional.relu(self.norm(self.conv(x)))


class Classifier(nn.Module):
    def __init__(self, width=8, classes=2):
        super().__init__()
        self.features = nn.Sequential(Block(1, width), nn.MaxPool2d(2), Block(width, 2 * width))
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = self.features(x).mean((2, 3))
        return self.head(self.drop(x))
