"""The training loop with early stopping, checkpoints, and a schedule."""
import random
import numpy as np
import torch
from .journal import Journal

def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

class Loop:
    def __init__(self, config, model, loss, journal=None):
        self.config, self.model, self.loss = config, model, loss
        self.journal = journal or Journal(config)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 8)
        self.best, self.bad = float("inf"), 0

    def epoch(self, loader):
        self.model.train()
        total, seen = 0.0, 0
        for n, (x, y) in enumerate(loader):
            self.optimizer.zero_grad(set_to_none=True)
            value = self.loss(self.model(x), y)
            value.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            total, seen = total + value.item() * len(y), seen + len(y)
            self.journal.bar(n + 1, len(loader) if hasattr(loader, "__len__") else n + 1)
        self.schedule.step()
        return total / seen

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        values = [self.loss(self.model(x), y).item() for x, y in loader]
        return sum(values) / len(values)

    def fit(self, train, valid=None):
        for number in range(self.config.epochs):
            row = {"epoch": number, "train": self.epoch(train)}
            if valid is not None:
                row["valid"] = self.evaluate(valid)
                self.bad = 0 if row["valid"] < self.best else self.bad + 1
                self.best = min(self.best, row["valid"])
            self.journal.row(**row)
            torch.save({"model": self.model.state_dict(), "epoch": number}, self.config.path(f"epoch{number}.pt"))
            if self.bad > 3:
                break
        self.journal.close(best=self.best if valid is not None else row["train"])
