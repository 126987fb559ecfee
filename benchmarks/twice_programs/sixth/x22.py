"""https://github.com/ultralytics/yolov5/issues/9156 - sizes are chosen automatically from the memory that is free at that moment, which is hard to reproduce; here the size of the shuffle buffer."""
import json
import os
import random
import time

import numpy as np
import psutil
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SEED = 9156


def free_memory():
    return psutil.virtual_memory().available  # cause


class MemoryPlanner:
    """Gives every consumer of memory a share of what can be used."""

    shares = {"model": 0.25, "activations": 0.5, "shuffle": 0.02}

    def __init__(self, safety=0.2):
        self.safety = safety

    def rows(self, consumer, bytes_per_row, least=256):
        budget = free_memory() * self.safety * self.shares[consumer]
        return max(least, int(budget / bytes_per_row))


class WaveSource:
    """Generates records on the fly, as if they came from a long file."""

    width = 64

    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.n, 500):
            label = rng.integers(0, 3, 500)
            drift = start / self.n
            t = np.linspace(0, 1, self.width)
            freq = (2.0 + label + 0.6 * drift)[:, None]
            x = np.sin(6.28 * freq * t + rng.uniform(0, 6.28, (500, 1))) + rng.normal(0, 0.7, (500, self.width))
            for row, lab in zip(x.astype(np.float32), label):
                yield row, int(lab)


class BufferedShuffle(IterableDataset):
    def __init__(self, source, size, seed):
        self.source, self.size, self.seed = source, size, seed
        self.epoch = 0

    def __iter__(self):
        rng = random.Random(self.seed + self.epoch)
        buffer = []
        for item in self.source:
            if len(buffer) < self.size:
                buffer.append(item)
                continue
            k = rng.randrange(self.size)
            yield buffer[k]
            buffer[k] = item
        rng.shuffle(buffer)
        yield from buffer


def make_model(width):
    return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 3))


@torch.no_grad()
def accuracy(model, source):
    x, y = zip(*source)
    return (model(torch.tensor(np.stack(x))).argmax(1) == torch.tensor(y)).float().mean().item()


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    row_bytes = WaveSource.width * 4 * 20
    size = MemoryPlanner().rows("shuffle", row_bytes)
    print(f"pid {os.getpid()} {time.strftime('%F %T')} rss {psutil.Process().memory_info().rss >> 20} MB")
    train = BufferedShuffle(WaveSource(24000, seed=1), size, SEED)
    model = make_model(WaveSource.width)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    results = []
    for epoch in range(2):
        train.epoch, t0, total, steps = epoch, time.time(), 0.0, 0
        for x, y in DataLoader(train, batch_size=64):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            steps += 1
        acc = accuracy(model, WaveSource(2000, seed=2))
        results.append({"epoch": epoch, "loss": total / steps, "accuracy": acc, "elapsed": time.time() - t0})
        print(f"epoch {epoch} loss {total / steps:.6f} acc {acc:.4f}")
    with open("results.json", "w") as f:
        json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
