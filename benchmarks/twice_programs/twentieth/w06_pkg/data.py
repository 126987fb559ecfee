"""Glyph images and the data loader."""
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SIZE = 16
GLYPHS = {
    0: [(3, 3, 12, 3), (12, 3, 12, 12), (12, 12, 3, 12), (3, 12, 3, 3)],
    1: [(8, 3, 8, 12)],
    2: [(3, 3, 12, 12), (3, 12, 12, 3)],
    3: [(3, 8, 12, 8), (8, 3, 8, 12)],
    4: [(3, 12, 8, 3), (8, 3, 12, 12)],
    5: [(3, 3, 3, 12), (3, 12, 12, 12)],
    6: [(3, 3, 12, 3), (8, 3, 8, 12)],
    7: [(3, 12, 8, 3), (8, 3, 12, 12), (5, 9, 11, 9)],
}


def _stroke(canvas, x0, y0, x1, y1):
    for t in np.linspace(0, 1, 24):
        x, y = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
        canvas[int(round(np.clip(y, 0, SIZE - 1))), int(round(np.clip(x, 0, SIZE - 1)))] = 1.0


class GlyphDataset(Dataset):
    def __init__(self, n, seed, transform=None):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(GLYPHS), n)
        self.images = np.zeros((n, SIZE, SIZE), dtype=np.float32)
        for image, label in zip(self.images, self.labels):
            jitter = rng.normal(0, 0.7, 4)
            for stroke in GLYPHS[int(label)]:
                _stroke(image, *(np.asarray(stroke) + jitter))
            image += rng.normal(0, 0.35, image.shape)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i].copy())
        if self.transform is not None:
            image = self.transform(image)
        return image[None], int(self.labels[i])


def _seed_worker(worker_id):
    seed = torch.initial_seed() % 2 ** 32
    random.seed(seed)
    np.random.seed(seed)


def build_dataloader(dataset, batch_size, shuffle, num_workers, seed):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return DataLoader(dataset, batch_size=batch_size, shuffle=shuffle, num_workers=num_workers,
                      worker_init_fn=_seed_worker, generator=generator)
