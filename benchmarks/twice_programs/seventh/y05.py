"""https://github.com/chainer/chainer/pull/3575 - numpy.random keeps one state for all threads; a prefetch thread that draws
from it makes the numbers depend on when the threads switch, also for the main thread that had been seeded."""
import json
import os
import queue
import threading
import time

import numpy as np
import torch
from torch import nn

SEED = 2017


class ToneDataset:
    def __init__(self, n=640, length=128):
        g = np.random.RandomState(1)
        t = np.arange(length) / length
        self.y = g.randint(0, 4, n)
        f = 3 + 2 * self.y[:, None]
        self.x = (np.sin(2 * np.pi * f * t + g.uniform(0, 6, (n, 1))) + g.normal(0, 0.4, (n, length))).astype(np.float32)

    def __len__(self):
        return len(self.y)


class Augment:
    """Random shift, gain and a masked stretch."""

    def __init__(self, rng=None):
        self.rng = rng or np.random  # cause

    def __call__(self, x):
        x = np.roll(x, self.rng.randint(0, len(x)))
        x = x * self.rng.uniform(0.7, 1.3)
        k = self.rng.randint(0, len(x) - 16)
        x = x.copy()
        x[k:k + 16] = 0
        return x


class PrefetchIterator:
    def __init__(self, dataset, batch_size, transform, depth=4):
        self.dataset, self.batch_size, self.transform = dataset, batch_size, transform
        self.buffer = queue.Queue(depth)
        self.thread = None

    def start(self, order):
        self.thread = threading.Thread(target=self._fill, args=(order,), name="prefetch", daemon=True)
        self.thread.start()

    def _fill(self, order):
        for i in range(0, len(order), self.batch_size):
            idx = order[i:i + self.batch_size]
            batch = np.stack([self.transform(self.dataset.x[j]) for j in idx])
            self.buffer.put((batch, self.dataset.y[idx]))
        self.buffer.put(None)

    def __iter__(self):
        while True:
            item = self.buffer.get()
            if item is None:
                self.thread.join()
                return
            yield torch.from_numpy(item[0]), torch.from_numpy(item[1])


def mixup(x, y, alpha=0.3):
    lam = float(np.random.beta(alpha, alpha))
    perm = np.random.permutation(len(x))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


def main(epochs=6):
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    data = ToneDataset()
    it = PrefetchIterator(data, 32, Augment())
    net = nn.Sequential(nn.Unflatten(1, (1, 128)), nn.Conv1d(1, 16, 9, stride=2), nn.ReLU(), nn.Conv1d(16, 16, 9, stride=2),
                        nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, 4))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    history = []
    for epoch in range(epochs):
        t0 = time.time()
        it.start(np.random.permutation(len(data)))
        total = 0.0
        for x, y in it:
            x, ya, yb, lam = mixup(x, y)
            out = net(x)
            loss = lam * nn.functional.cross_entropy(out, ya) + (1 - lam) * nn.functional.cross_entropy(out, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        with torch.no_grad():
            acc = (net(torch.from_numpy(data.x)).argmax(1).numpy() == data.y).mean()
        history.append({"loss": total / 20, "accuracy": float(acc)})
        print(f"epoch {epoch} loss {history[-1]['loss']:.5f} accuracy {acc:.4f} {time.time() - t0:.2f}s (pid {os.getpid()})")
    with open("tones.json", "w") as f:
        json.dump(history, f, indent=1)


if __name__ == "__main__":
    main()
