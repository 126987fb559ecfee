"""https://github.com/ultralytics/ultralytics/pull/15961 : training stays non-deterministic despite deterministic=True when images are
cached by a thread pool: the mosaic buffer is filled in the order in which the threads finish loading."""
import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROOT = "images"
SIZE = 24


def init_seeds(seed=0, deterministic=True):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(deterministic)


def make_images(n, folder, seed):
    os.makedirs(folder, exist_ok=True)
    rs = np.random.RandomState(seed)
    for i in range(n):
        img = rs.randint(0, 60, (4 * SIZE, 4 * SIZE, 3)).astype(np.uint8)
        for _ in range(rs.randint(1, 5)):
            y, x = rs.randint(0, 3 * SIZE, 2)
            img[y:y + SIZE // 2, x:x + SIZE // 2] = rs.randint(120, 255, 3)
        Image.fromarray(img).save(os.path.join(folder, f"{i:05d}.png"))


class DetectionDataset(Dataset):
    def __init__(self, folder, augment, threads=2):
        self.files = sorted(os.path.join(folder, f) for f in os.listdir(folder))
        self.augment = augment
        self.ims = [None] * len(self.files)
        self.buffer = []
        self.max_buffer = min(len(self.files), 60)
        self.cache_images(threads)

    def load_image(self, i):
        if self.ims[i] is None:
            with Image.open(self.files[i]) as im:
                arr = np.asarray(im.resize((SIZE, SIZE), Image.BILINEAR), dtype=np.float32) / 255
            self.ims[i] = arr
            if self.augment:
                self.buffer.append(i)  # cause
                if len(self.buffer) > self.max_buffer:
                    self.buffer.pop(0)
        return self.ims[i]

    def cache_images(self, threads):
        size = 0
        with ThreadPoolExecutor(threads) as pool:
            for arr in pool.map(self.load_image, range(len(self.files))):
                size += arr.nbytes
        print("cached %.1f MB" % (size / 1e6))

    def mosaic(self, i):
        picks = [i] + random.choices(list(self.buffer), k=3)  # cause
        half = SIZE // 2
        out = np.zeros((SIZE, SIZE, 3), np.float32)
        for k, j in enumerate(picks):
            y, x = divmod(k, 2)
            out[y * half:(y + 1) * half, x * half:(x + 1) * half] = self.ims[j][::2, ::2]
        return out

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = self.mosaic(i) if self.augment and random.random() < 0.8 else self.load_image(i)
        target = (img.max(-1) > 0.45).mean((0, 1))
        return torch.from_numpy(img).permute(2, 0, 1), torch.tensor([target], dtype=torch.float32)


def model():
    return nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.SiLU(), nn.Conv2d(12, 24, 3, 2, 1), nn.SiLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 1), nn.Sigmoid())


def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        return sum(nn.functional.l1_loss(net(x), y, reduction="sum").item() for x, y in loader) / len(loader.dataset)


def main():
    t = time.time()
    make_images(160, f"{ROOT}/train", 1)
    make_images(40, f"{ROOT}/val", 2)
    print("images after %.2f s" % (time.time() - t))
    init_seeds(0)
    train = DataLoader(DetectionDataset(f"{ROOT}/train", True), 16, shuffle=True)
    val = DataLoader(DetectionDataset(f"{ROOT}/val", False), 40)
    net = model()
    opt = torch.optim.AdamW(net.parameters(), 5e-3)
    rows = []
    for epoch in range(4):
        net.train()
        total = 0.0
        for x, y in train:
            loss = nn.functional.binary_cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        rows.append({"epoch": epoch, "loss": total / len(train), "val_l1": evaluate(net, val)})
        print("%(epoch)d %(loss).6f %(val_l1).6f" % rows[-1], "elapsed %.2f" % (time.time() - t))
    with open("results.json", "w") as f:
        json.dump(rows, f)


if __name__ == "__main__":
    main()
