"""https://github.com/pytorch/pytorch/pull/4640 - non-determinate preprocessing in a multi-process loader: all workers
take tasks from one index queue, so which worker (and which of its seeded generators) augments a sample varies."""
import json
import os
import time

import numpy as np
import torch
import torch.multiprocessing as mp
from torch import nn


def render_digit(k, size=12):
    g = np.random.default_rng(k)
    img = np.zeros((size, size), np.float32)
    pts = g.integers(1, size - 1, (7, 2))
    for (a, b), (c, d) in zip(pts[:-1], pts[1:]):
        for t in np.linspace(0, 1, 12):
            img[int(a + t * (c - a)), int(b + t * (d - b))] = 1.0
    return img


class Glyphs:
    def __init__(self, n, classes=6):
        g = np.random.default_rng(5)
        self.labels = g.integers(0, classes, n)
        self.shapes = [render_digit(k) for k in range(classes)]

    def sample(self, i, rng):
        img = np.roll(self.shapes[self.labels[i]], rng.integers(-2, 3, 2), axis=(0, 1))
        img = img * rng.uniform(0.6, 1.2) + rng.normal(0, 0.35, img.shape)
        return img.astype(np.float32)


def worker_loop(wid, seed, data, tasks, results):
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed + wid)
    while True:
        job = tasks.get()
        if job is None:
            break
        number, indices = job
        batch = np.stack([data.sample(i, rng) for i in indices])
        results.put((number, batch, data.labels[indices]))


class Loader:
    """Batches in order, prepared by several processes."""

    def __init__(self, data, batch_size, workers, seed):
        self.data, self.batch_size, self.seed = data, batch_size, seed
        ctx = mp.get_context("fork")
        self.results = ctx.Queue()
        shared = ctx.Queue()
        self.queues = [shared for _ in range(workers)]  # cause
        self.procs = [ctx.Process(target=worker_loop, args=(w, seed, data, q, self.results), daemon=True)
                      for w, q in enumerate(self.queues)]
        for p in self.procs:
            p.start()

    def epoch(self, order):
        chunks = np.array_split(order, range(self.batch_size, len(order), self.batch_size))
        for n, chunk in enumerate(chunks):
            self.queues[n % len(self.queues)].put((n, chunk))
        waiting = {}
        for n in range(len(chunks)):
            while n not in waiting:
                number, x, y = self.results.get(timeout=60)
                waiting[number] = (x, y)
            x, y = waiting.pop(n)
            yield torch.from_numpy(x).unsqueeze(1), torch.from_numpy(y)

    def close(self):
        for q in self.queues:
            q.put(None)
        for p in self.procs:
            p.join(10)


def main(seed=1024, epochs=5):
    torch.manual_seed(seed)
    np.random.seed(seed)
    data = Glyphs(900)
    loader = Loader(data, 30, workers=2, seed=seed)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, 6))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    log = []
    for epoch in range(epochs):
        t0 = time.time()
        order = np.random.permutation(len(data.labels))
        total, right = 0.0, 0
        for x, y in loader.epoch(order):
            out = net(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
            right += (out.argmax(1) == y).sum().item()
        log.append({"epoch": epoch, "loss": total / len(order), "accuracy": right / len(order)})
        print(f"epoch {epoch} loss {log[-1]['loss']:.5f} accuracy {log[-1]['accuracy']:.3f} {time.time() - t0:.2f}s")
    loader.close()
    torch.save(net.state_dict(), "net.pt")
    with open("train_log.json", "w") as f:
        json.dump(log, f, indent=1)
    print("pid", os.getpid(), "done")


if __name__ == "__main__":
    main()
