"""Synthetic image pairs: H is clean, L is H with noise."""
import numpy as np
import torch
from torch.utils.data import Dataset


def draw_image(rng, size):
    yy, xx = np.mgrid[0:size, 0:size] / size
    fx, fy = rng.uniform(0.5, 3.0, 2)
    image = 0.5 + 0.25 * np.sin(2 * np.pi * (fx * xx + fy * yy) + rng.uniform(0, 6.28))
    x0, y0 = rng.integers(0, size - 5, 2)
    image[y0:y0 + 5, x0:x0 + 5] += rng.uniform(-0.3, 0.3)
    return np.clip(image, 0, 1).astype(np.float32)


class RestorationSet(Dataset):
    def __init__(self, opt):
        self.opt = opt
        rng = np.random.default_rng(opt["data_seed"])
        self.images = [draw_image(rng, opt["size"]) for _ in range(opt["n"])]
        self.noise = [rng.normal(0, opt["sigma"] / 255.0, (opt["size"],) * 2).astype(np.float32)
                      for _ in range(opt["n"])]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        high = self.images[index]
        low = high + self.noise[index]
        if self.opt["phase"] == "train":
            mode = int(np.random.randint(0, 4))
            high, low = np.rot90(high, mode).copy(), np.rot90(low, mode).copy()
        return {"L": torch.from_numpy(low)[None], "H": torch.from_numpy(high)[None]}
