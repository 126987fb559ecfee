"""Model and training loop."""
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .data import GLYPHS


class GlyphNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.head = nn.Linear(16 * 4 * 4, n_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(x.flatten(1))


class TrainRecipe:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = GlyphNet(len(GLYPHS))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.learning_rate,
                                           weight_decay=cfg.weight_decay)

    def train(self, train_loader, valid_loader):
        history = []
        for epoch in range(1, self.cfg.epochs + 1):
            start, total, seen = time.time(), 0.0, 0
            self.model.train()
            for images, labels in train_loader:
                loss = F.cross_entropy(self.model(images), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += float(loss.detach()) * len(labels)
                seen += len(labels)
            accuracy, _ = self.evaluate(valid_loader)
            history.append({"epoch": epoch, "train_loss": total / seen, "accuracy": accuracy})
            print(f"epoch {epoch}: train loss {total / seen:.6f}  valid accuracy {accuracy:.4f}  "
                  f"({time.time() - start:.1f} s)", flush=True)
        return history

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        n = len(GLYPHS)
        confusion = np.zeros((n, n), dtype=int)
        for images, labels in loader:
            predicted = self.model(images).argmax(1)
            np.add.at(confusion, (labels.numpy(), predicted.numpy()), 1)
        return float(np.trace(confusion) / confusion.sum()), confusion
