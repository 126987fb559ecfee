import time

import torch


class Trainer:
    def __init__(self, model, loader, optimizer):
        self.model, self.optimizer = model, optimizer
        self._batches = iter(loader)

    def run_step(self):
        start = time.perf_counter()
        batch = next(self._batches)
        data_time = time.perf_counter() - start
        loss = torch.nn.functional.smooth_l1_loss(self.model(batch["features"]), batch["boxes"])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), data_time

    def train(self, start, end):
        for self.iter in range(start, end):
            loss, data_time = self.run_step()
            if self.iter % 5 == 0:
                print(f"iter: {self.iter}  total_loss: {loss:.5f}  data_time: {data_time:.4f}")
