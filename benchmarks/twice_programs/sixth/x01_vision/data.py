import numpy as np
import torch
from torch.utils.data import Dataset

SIDE = 16


def make_images(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    images = np.zeros((n, SIDE, SIDE), np.float32)
    for i, lab in enumerate(labels):
        freq, phase = 1 + lab, rng.random() * 6.28
        angle = rng.normal(0.0, 0.15)
        images[i] = np.sin(freq * 6.28 * (xx * np.cos(angle) + yy * np.sin(angle)) + phase)
    images += rng.normal(0, 0.4, images.shape).astype(np.float32)
    return images, labels


class Patterns(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        if self.transform is not None:
            img = self.transform(img)
        return torch.from_numpy(img)[None], int(self.labels[i])
