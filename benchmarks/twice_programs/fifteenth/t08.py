#!/usr/bin/env python
"""Object detector training with a threaded, augmenting batch generator.

Modelled on https://github.com/fizyr/keras-retinanet/pull/1085

Synthetic images with one coloured rectangle each are augmented on the fly by
worker threads and fed in order to a small convolutional box regressor.
"""
import argparse
import json
import logging
import queue
import random
import threading
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

LOGGER = logging.getLogger("train")
SIZE = 48


def make_image(i, seed):
    rng = np.random.default_rng([seed, i])
    img = rng.normal(0.2, 0.08, size=(3, SIZE, SIZE))
    w, h = rng.integers(8, 22, size=2)
    x, y = rng.integers(2, SIZE - w - 2), rng.integers(2, SIZE - h - 2)
    colour = rng.uniform(0.5, 1.0, size=3)
    img[:, y:y + h, x:x + w] += colour[:, None, None]
    return img.astype(np.float32), np.array([x, y, x + w, y + h], dtype=np.float32)


class TransformGenerator:
    """Random flips, shifts and brightness changes."""

    def __init__(self, prng, flip=0.5, shift=5, brightness=0.25):
        self.prng = prng
        self.flip, self.shift, self.brightness = flip, shift, brightness

    def next_params(self):
        return {
            "flip": self.prng.random() < self.flip,  # cause
            "dx": int(self.prng.integers(-self.shift, self.shift + 1)),
            "dy": int(self.prng.integers(-self.shift, self.shift + 1)),
            "gain": 1.0 + self.prng.uniform(-self.brightness, self.brightness),
        }


def adjust(img, box, params):
    img, box = img.copy(), box.copy()
    if params["flip"]:
        img = img[:, :, ::-1]
        box[[0, 2]] = SIZE - box[[2, 0]]
    img = np.roll(img, (params["dy"], params["dx"]), axis=(1, 2)) * params["gain"]
    box[[0, 2]] = np.clip(box[[0, 2]] + params["dx"], 0, SIZE)
    box[[1, 3]] = np.clip(box[[1, 3]] + params["dy"], 0, SIZE)
    return img, box


class Generator:
    def __init__(self, data, batch_size, seed):
        self.data = data
        self.batch_size = batch_size
        self.order_rng = np.random.default_rng(seed)
        self.transform = TransformGenerator(np.random.default_rng(seed + 1))

    def __len__(self):
        return len(self.data) // self.batch_size

    def groups(self):
        order = self.order_rng.permutation(len(self.data))
        return [order[i * self.batch_size:(i + 1) * self.batch_size] for i in range(len(self))]

    def compute_batch(self, group):
        images, boxes = [], []
        for i in group:
            img, box = self.data[i]
            params = self.transform.next_params()  # cause
            img, box = adjust(img, box, params)
            images.append(self.preprocess(img))
            boxes.append(box / SIZE)
        return np.stack(images), np.stack(boxes)

    @staticmethod
    def preprocess(img):
        img = img - img.mean(axis=(1, 2), keepdims=True)
        scale = np.sqrt(np.square(img).mean(axis=(1, 2), keepdims=True)) + 1e-6
        return (img / scale).astype(np.float32)


class OrderedEnqueuer:
    """Threads compute batches ahead of time, batches come out in order."""

    def __init__(self, generator, workers, max_queue):
        self.generator, self.workers, self.max_queue = generator, workers, max_queue

    def epoch(self):
        groups = self.generator.groups()
        jobs = queue.Queue()
        results = {}
        ready = threading.Condition()
        slots = threading.Semaphore(self.max_queue)
        for i, g in enumerate(groups):
            jobs.put((i, g))

        def work():
            while True:
                slots.acquire()
                try:
                    i, group = jobs.get_nowait()
                except queue.Empty:
                    return
                batch = self.generator.compute_batch(group)
                with ready:
                    results[i] = batch
                    ready.notify_all()

        threads = [threading.Thread(target=work, daemon=True) for _ in range(self.workers)]
        for t in threads:
            t.start()
        for i in range(len(groups)):
            with ready:
                ready.wait_for(lambda: i in results)
                batch = results.pop(i)
            slots.release()
            yield batch
        for _ in threads:
            slots.release()
        for t in threads:
            t.join()


class BoxNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 12, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(24, 24, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.box = nn.Linear(24 * 36, 4)

    def forward(self, x):
        return torch.sigmoid(self.box(self.features(x).flatten(1)))


def iou(a, b):
    lt, rb = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(1)
    area = lambda t: (t[:, 2:] - t[:, :2]).clamp(min=0).prod(1)
    return inter / (area(a) + area(b) - inter + 1e-9)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--random-seed", type=int, default=1085)
    ap.add_argument("--images", type=int, default=480)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--workers", type=int, default=4)
    ap.add_argument("--max-queue-size", type=int, default=8)
    ap.add_argument("--snapshot-path", type=Path, default=Path("snapshots"))
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    random.seed(args.random_seed)
    np.random.seed(args.random_seed)
    torch.manual_seed(args.random_seed)
    torch.set_num_threads(1)
    args.snapshot_path.mkdir(parents=True, exist_ok=True)

    data = [make_image(i, args.random_seed) for i in range(args.images)]
    held_out = [make_image(100000 + i, args.random_seed) for i in range(64)]
    generator = Generator(data, args.batch_size, args.random_seed)
    enqueuer = OrderedEnqueuer(generator, args.workers, args.max_queue_size)
    model = BoxNet()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    history = []
    for epoch in range(args.epochs):
        t0, losses = time.time(), []
        for images, boxes in enqueuer.epoch():
            loss = nn.functional.smooth_l1_loss(model(torch.from_numpy(images)), torch.from_numpy(boxes), beta=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        history.append(round(float(np.mean(losses)), 8))
        LOGGER.info("epoch %d loss %.5f (%.2fs)", epoch + 1, history[-1], time.time() - t0)

    x = torch.from_numpy(np.stack([Generator.preprocess(i) for i, _ in held_out]))
    y = torch.from_numpy(np.stack([b for _, b in held_out])) / SIZE
    with torch.no_grad():
        overlap = iou(model(x), y)
    result = {"loss": history, "mean_iou": round(float(overlap.mean()), 6)}
    (args.snapshot_path / "result.json").write_text(json.dumps(result))
    torch.save(model.state_dict(), args.snapshot_path / "model.pt")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
