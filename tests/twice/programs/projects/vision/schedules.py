import time

import torch


class Budget:
    """Lowers the learning rate with the time that is used up."""

    def __init__(self, optimizer, seconds):
        self.optimizer = optimizer
        self.seconds = seconds
        self.started = time.monotonic()
        self.base = [group["lr"] for group in optimizer.param_groups]

    def step(self):
        used = (time.monotonic() - self.started) / self.seconds  # cause: budget
        for group, base in zip(self.optimizer.param_groups, self.base, strict=True):
            group["lr"] = base * max(0.0, 1 - used)


def make(options, optimizer):
    if options.schedule == "budget":
        return Budget(optimizer, 60.0)
    return torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
