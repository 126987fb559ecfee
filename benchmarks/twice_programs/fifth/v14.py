"""The learning rate follows the share of a time budget that tqdm says is used; of no single report."""

import numpy as np
import torch
from tqdm import tqdm

BUDGET = 2.0


class Schedule:
    def __init__(self, optimizer, bar, peak):
        self.optimizer, self.bar, self.peak = optimizer, bar, peak

    def progress(self):
        return min(1.0, self.bar.format_dict["elapsed"] / BUDGET)  # cause

    def step(self):
        rate = self.peak * (1 - 0.9 * self.progress())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate


def corpus():
    rng = np.random.default_rng(2)
    return torch.as_tensor(rng.integers(0, 30, (64, 9)))


def main():
    torch.manual_seed(0)
    tokens = corpus()
    table = torch.nn.Embedding(30, 16)
    head = torch.nn.Linear(16, 30)
    optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
    bar = tqdm(range(40), desc="train", mininterval=0.05)
    schedule = Schedule(optimizer, bar, 0.5)
    for step in bar:
        rows = tokens[(step * 8) % 64 :][:8]
        logits = head(table(rows[:, :-1]))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        schedule.step()
        optimizer.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")
    print("final loss", loss.item())


main()
