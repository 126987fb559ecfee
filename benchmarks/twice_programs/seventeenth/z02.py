"""Train an image tagger from tar shards with a buffered streaming shuffle.

Modelled on https://github.com/webdataset/webdataset/issues/122

Shards are written to ./shards, streamed back through a chain of pipeline stages
and fed to a small convolutional classifier. Writes history.json and predictions.csv.
"""
import csv
import io
import json
import logging
import os
import random
import sys
import tarfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SEED = 1337
N_SHARDS = 8
PER_SHARD = 60
CLASSES = ("stripe", "check", "dot", "ring")
SIDE = 16

log = logging.getLogger("shards")


# ---------------------------------------------------------------- data writing
def render(kind, rng):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    phase, freq = rng.uniform(0, np.pi), rng.uniform(0.8, 1.6)
    if kind == 0:
        img = np.sin(freq * xx + phase)
    elif kind == 1:
        img = np.sign(np.sin(freq * xx + phase) * np.sin(freq * yy + phase))
    elif kind == 2:
        cy, cx = rng.uniform(4, SIDE - 4, size=2)
        img = np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 8.0)
    else:
        cy, cx = rng.uniform(6, SIDE - 6, size=2)
        r = np.sqrt((yy - cy) ** 2 + (xx - cx) ** 2)
        img = np.exp(-((r - 4.0) ** 2) / 1.5)
    img = img + rng.normal(0, 0.9, size=img.shape)
    return img.astype(np.float32)


def write_shards(folder, seed):
    rng = np.random.default_rng(seed)
    os.makedirs(folder, exist_ok=True)
    names = []
    for s in range(N_SHARDS + 1):
        name = os.path.join(folder, f"part-{s:04d}.tar")
        with tarfile.open(name, "w") as tar:
            for i in range(PER_SHARD):
                kind = int(rng.integers(len(CLASSES)))
                key = f"{s:04d}{i:05d}"
                for ext, payload in (("npy", render(kind, rng).tobytes()), ("cls", str(kind).encode())):
                    info = tarfile.TarInfo(f"{key}.{ext}")
                    info.size = len(payload)
                    tar.addfile(info, io.BytesIO(payload))
        names.append(name)
    return names[:-1], names[-1:]


# ------------------------------------------------------------- pipeline stages
def shard_list(names, epoch, do_shuffle):
    names = list(names)
    if do_shuffle:
        random.Random(SEED + epoch).shuffle(names)
    yield from names


def tar_samples(source):
    for name in source:
        with tarfile.open(name) as tar:
            current = {}
            for member in tar:
                key, ext = member.name.rsplit(".", 1)
                if current and current["key"] != key:
                    yield current
                    current = {}
                current["key"] = key
                current[ext] = tar.extractfile(member).read()
            if current:
                yield current


shuffle_rng = random.Random()
shuffle_rng.seed(os.getpid() * 1_000_003 + time.time_ns())  # cause


def shuffled(source, bufsize=120, initial=60, rng=shuffle_rng):
    """Yield the samples of the source in an order mixed within a buffer."""
    buf = []
    for sample in source:
        buf.append(sample)
        if len(buf) < initial:
            continue
        if len(buf) >= bufsize or len(buf) % 2 == 0:
            k = rng.randrange(len(buf))
            buf[k], buf[-1] = buf[-1], buf[k]
            yield buf.pop()
    while buf:
        k = rng.randrange(len(buf))
        buf[k], buf[-1] = buf[-1], buf[k]
        yield buf.pop()


def decoded(source):
    for sample in source:
        img = np.frombuffer(sample["npy"], dtype=np.float32).reshape(1, SIDE, SIDE)
        yield sample["key"], torch.from_numpy(img.copy()), int(sample["cls"])


class ShardStream(IterableDataset):
    def __init__(self, names, train):
        self.names, self.train, self.epoch = names, train, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        stream = tar_samples(shard_list(self.names, self.epoch, self.train))
        if self.train:
            stream = shuffled(stream)
        return decoded(stream)


# ----------------------------------------------------------------------- model
def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * (SIDE // 4) ** 2, 32), nn.ReLU(),
        nn.Linear(32, len(CLASSES)))


def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total = seen = hits = 0
    for _, x, y in loader:
        opt.zero_grad()
        logits = model(x)
        loss = loss_fn(logits, y)
        loss.backward()
        opt.step()
        total += loss.item() * len(y)
        hits += (logits.argmax(1) == y).sum().item()
        seen += len(y)
    return total / seen, hits / seen, seen


@torch.no_grad()
def predict(model, loader):
    model.eval()
    rows = []
    for keys, x, y in loader:
        prob = torch.softmax(model(x), dim=1)
        for key, p, t in zip(keys, prob, y):
            rows.append({"key": key, "target": CLASSES[int(t)], "predicted": CLASSES[int(p.argmax())],
                         "confidence": f"{p.max().item():.6f}"})
    return rows


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="[%(asctime)s] %(name)s: %(message)s")
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)

    t0 = time.perf_counter()
    train_names, val_names = write_shards("shards", SEED)
    log.info("wrote %d shards below %s in %.2fs", len(train_names) + 1, os.path.abspath("shards"),
             time.perf_counter() - t0)
    train_set, val_set = ShardStream(train_names, True), ShardStream(val_names, False)
    train_loader = DataLoader(train_set, batch_size=32)
    val_loader = DataLoader(val_set, batch_size=32)

    model = build_model()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    history = []
    for epoch in range(5):
        t0 = time.perf_counter()
        train_set.set_epoch(epoch)
        loss, acc, seen = train_epoch(model, train_loader, opt, loss_fn)
        rows = predict(model, val_loader)
        val_acc = np.mean([r["target"] == r["predicted"] for r in rows])
        history.append({"epoch": epoch, "loss": loss, "train_acc": acc, "val_acc": float(val_acc)})
        log.info("epoch %d: loss=%.5f acc=%.4f val_acc=%.4f (%d samples, %.2fs)", epoch, loss, acc,
                 val_acc, seen, time.perf_counter() - t0)

    with open("history.json", "w") as fh:
        json.dump(history, fh, indent=1)
    with open("predictions.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    log.info("final validation accuracy %.4f", history[-1]["val_acc"])


if __name__ == "__main__":
    main()
