"""https://github.com/funkelab/gunpowder/pull/77 : a random seed is set at the start of each worker process to avoid equal streams, with
np.random.seed(None), so batches and augmentations of a seeded training are fresh entropy in each run."""
import json
import os
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

VOLUME = (24, 64, 64)
ROI = (6, 20, 20)


def make_volume(seed):
    rs = np.random.RandomState(seed)
    raw = np.zeros(VOLUME, np.float32)
    zz, yy, xx = np.mgrid[:VOLUME[0], :VOLUME[1], :VOLUME[2]]
    labels = np.zeros(VOLUME, np.float32)
    for _ in range(40):
        c = [rs.randint(0, s) for s in VOLUME]
        r = rs.uniform(2, 5)
        ball = ((zz - c[0]) * 2) ** 2 + (yy - c[1]) ** 2 + (xx - c[2]) ** 2 < r * r
        raw[ball] = rs.uniform(0.5, 1.0)
        labels[ball] = 1
    return raw + 0.2 * rs.randn(*VOLUME).astype(np.float32), labels


class RandomLocation:
    def __call__(self, raw, labels):
        o = [np.random.randint(0, s - r + 1) for s, r in zip(VOLUME, ROI)]
        box = tuple(slice(a, a + r) for a, r in zip(o, ROI))
        return raw[box], labels[box]


class SimpleAugment:
    def __call__(self, raw, labels):
        for axis in (1, 2):
            if random.random() < 0.5:
                raw, labels = np.flip(raw, axis), np.flip(labels, axis)
        return raw, labels


class IntensityAugment:
    def __init__(self, scale=(0.8, 1.2), shift=(-0.1, 0.1)):
        self.scale, self.shift = scale, shift

    def __call__(self, raw, labels):
        return raw * np.random.uniform(*self.scale) + np.random.uniform(*self.shift), labels


class Pipeline(IterableDataset):
    def __init__(self, source, nodes, batches):
        self.raw, self.labels = source
        self.nodes = nodes
        self.batches = batches

    def request(self):
        raw, labels = self.raw, self.labels
        for node in self.nodes:
            raw, labels = node(raw, labels)
        return torch.from_numpy(np.ascontiguousarray(raw, np.float32))[None], torch.from_numpy(np.ascontiguousarray(labels))[None]

    def __iter__(self):
        info = get_worker_info()
        for _ in range(self.batches // info.num_workers):
            yield self.request()


def start_worker(worker_id):
    torch.set_num_threads(1)
    np.random.seed(None)  # cause


def net():
    return nn.Sequential(nn.Conv3d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv3d(6, 6, 3, padding=1), nn.ReLU(), nn.Conv3d(6, 1, 1))


def evaluate(model, source):
    raw, labels = source
    with torch.no_grad():
        out = model(torch.from_numpy(raw)[None, None])[0, 0].sigmoid().numpy() > 0.3
    inter = (out & (labels > 0)).sum()
    return float(2 * inter / max(1, out.sum() + labels.sum()))


def main():
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    t = time.time()
    train, test = make_volume(1), make_volume(2)
    pipeline = Pipeline(train, [RandomLocation(), SimpleAugment(), IntensityAugment()], 320)
    loader = DataLoader(pipeline, batch_size=8, num_workers=2, worker_init_fn=start_worker)
    model = net()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if step % 10 == 0:
            print("step %3d loss %.5f  pid %d  %.1f s" % (step, loss.item(), os.getpid(), time.time() - t))
    dice = evaluate(model, test)
    print("dice %.5f" % dice)
    with open("train_log.json", "w") as f:
        json.dump({"losses": losses, "dice": dice}, f)


if __name__ == "__main__":
    main()
