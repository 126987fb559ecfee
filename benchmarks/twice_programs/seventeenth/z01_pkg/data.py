"""Synthetic phantoms: a body ellipse with one to three bright lesions."""
import numpy as np
import torch
from torch.utils.data import Dataset


def make_phantom(rng, size):
    yy, xx = np.mgrid[0:size, 0:size]
    cy, cx = size / 2 + rng.uniform(-2, 2, size=2)
    ry, rx = size * rng.uniform(0.35, 0.45, size=2)
    body = ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 <= 1.0
    image = 0.2 + 0.3 * body + rng.normal(0.0, 0.05, size=(size, size))
    label = np.zeros((size, size), dtype=np.float32)
    for _ in range(rng.integers(1, 4)):
        ly, lx = cy + rng.uniform(-0.5, 0.5) * ry, cx + rng.uniform(-0.5, 0.5) * rx
        r = rng.uniform(2.0, 4.5)
        lesion = (yy - ly) ** 2 + (xx - lx) ** 2 <= r * r
        image[lesion] += rng.uniform(0.2, 0.4)
        label[lesion] = 1.0
    return image.astype(np.float32), label


class PhantomSet(Dataset):
    def __init__(self, n, size, seed, transform=None):
        rng = np.random.default_rng(seed)
        self.items = [make_phantom(rng, size) for _ in range(n)]
        self.transform = transform

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        image, label = self.items[index]
        if self.transform is not None:
            image, label = self.transform(image, label)
        image = torch.from_numpy(np.ascontiguousarray(image, dtype=np.float32))
        label = torch.from_numpy(np.ascontiguousarray(label, dtype=np.float32))
        return image[None], label[None]
