import torch
from torch import nn
from .log import Run

def seed_everything(seed=0):
    import random
    import numpy as np
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

class Trainer:
    def __init__(self, model, name="run", lr=1e-2, loss=None, schedule=None):
        self.model, self.loss = model, loss or nn.MSELoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.schedule = schedule
        self.run = Run(name)

    def fit(self, batches, epochs=2):
        number = 0
        for _ in range(epochs):
            for x, y in batches:
                loss = self.loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                if number % 4 == 0:
                    self.run.step(number, loss=loss.item())
                number += 1
                if self.schedule is not None and not self.schedule(number):
                    break
        torch.save(self.model.state_dict(), self.run.folder / "model.pt")
        self.run.finish(loss=loss.item())

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        value = self.loss(self.model(x), y).item()
        print(f"validation {value:.6f}")
        return value
