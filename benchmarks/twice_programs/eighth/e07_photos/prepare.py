"""Writes the synthetic picture shards."""
import multiprocessing as mp
import os

import numpy as np

CLASSES = 4
SIZE = 16


def draw(rs, label):
    img = 0.15 * rs.rand(SIZE, SIZE)
    k = rs.randint(3, SIZE - 6)
    if label == 0:
        img[k:k + 3, :] += 0.8
    elif label == 1:
        img[:, k:k + 3] += 0.8
    elif label == 2:
        img[k:k + 4, k:k + 4] += 0.8
    else:
        i = np.arange(SIZE)
        img[i, (i + k) % SIZE] += 0.8
    return img.astype(np.float32) + 0.25 * rs.randn(SIZE, SIZE).astype(np.float32)


def write_shards(folder, numbers, per_shard):
    for n in numbers:
        rs = np.random.RandomState(1000 + n)
        labels = rs.randint(CLASSES, size=per_shard)
        images = np.stack([draw(rs, c) for c in labels])
        np.savez(os.path.join(folder, f"part-{n:04d}-{os.getpid()}.npz"), images=images, labels=labels)


def prepare(folder, shards=24, per_shard=24):
    os.makedirs(folder, exist_ok=True)
    ctx = mp.get_context("fork")
    procs = [ctx.Process(target=write_shards, args=(folder, range(k, shards, 2), per_shard)) for k in range(2)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
