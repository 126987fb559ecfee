"""A two-level encoder-decoder and the overlap measures."""
import torch
from torch import nn


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


class SegNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enc1 = block(1, width)
        self.enc2 = block(width, 2 * width)
        self.pool = nn.AvgPool2d(2)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec = block(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(self.pool(a))
        return self.head(self.dec(torch.cat([a, self.up(b)], dim=1)))


def dice_loss(logits, target, eps=1.0):
    prob = torch.sigmoid(logits)
    inter = (prob * target).sum(dim=(1, 2, 3))
    total = prob.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
    bce = nn.functional.binary_cross_entropy_with_logits(logits, target)
    return (1.0 - (2.0 * inter + eps) / (total + eps)).mean() + bce


def dice_score(logits, target, eps=1e-6):
    pred = (logits > 0).float()
    inter = (pred * target).sum(dim=(1, 2, 3))
    total = pred.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
    return (2.0 * inter + eps) / (total + eps)
