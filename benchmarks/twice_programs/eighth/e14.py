"""https://github.com/bit-bots/YOEO/pull/114 : the letterbox canvas is np.empty and only partly covered by the image, so transforms work
on whatever was in memory; fixed with np.zeros."""
import json
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

IMG = 32


def seed_all(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


class Annotations:
    """Text labels in the style of darknet: class x y w h."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def write(self, i, boxes):
        with open(os.path.join(self.folder, f"{i:04d}.txt"), "w") as f:
            for b in boxes:
                f.write(" ".join(f"{v:.4f}" for v in b) + "\n")

    def read(self, i):
        with open(os.path.join(self.folder, f"{i:04d}.txt")) as f:
            return [tuple(float(v) for v in line.split()) for line in f]


def build(n, folder, seed):
    rs = np.random.RandomState(seed)
    notes = Annotations(folder)
    images = []
    for i in range(n):
        h, w = (IMG, rs.randint(14, IMG - 4)) if rs.rand() < 0.5 else (rs.randint(14, IMG - 4), IMG)
        img = rs.randint(90, 140, (h, w), dtype=np.uint8)
        size = rs.randint(4, 9)
        y, x = rs.randint(0, h - size), rs.randint(0, w - size)
        img[y:y + size, x:x + size] = 250
        notes.write(i, [(0, (x + size / 2) / w, (y + size / 2) / h, size / w, size / h)])
        images.append(img)
    return images, notes


def letterbox(img, size=IMG):
    canvas = np.empty((size, size), dtype=np.uint8)  # cause
    h, w = img.shape
    top, left = (size - h) // 2, (size - w) // 2
    canvas[top:top + h, left:left + w] = img
    return canvas, top, left


class Normalise:
    def __init__(self, mean=0.4, std=0.25):
        self.mean, self.std = mean, std

    def __call__(self, arr):
        return (arr.astype(np.float32) / 255.0 - self.mean) / self.std


class ListDataset(Dataset):
    def __init__(self, images, notes, transform):
        self.images, self.transform = images, transform
        self.index = [[str(b) for b in notes.read(i)] * 24 for i in range(len(images))]
        self.boxes = [notes.read(i)[0] for i in range(len(images))]

    def __len__(self):
        return len(self.images)

    def history(self, i):
        return [self.index[i][0] + str(k) for k in range(128)]

    def __getitem__(self, i):
        names = self.history(i)
        used = len(names)
        del names
        canvas, top, left = letterbox(self.images[i])
        _, cx, cy, w, h = self.boxes[i]
        ih, iw = self.images[i].shape
        target = [(cx * iw + left) / IMG, (cy * ih + top) / IMG, w * iw / IMG, h * ih / IMG]
        return torch.from_numpy(self.transform(canvas))[None], torch.tensor(target), used


def detector():
    return nn.Sequential(nn.Conv2d(1, 12, 3, 2, 1), nn.BatchNorm2d(12), nn.LeakyReLU(0.1),
                         nn.Conv2d(12, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.LeakyReLU(0.1),
                         nn.Flatten(), nn.Linear(24 * 64, 4), nn.Sigmoid())


def run_epoch(net, loader, opt=None):
    net.train(opt is not None)
    total, n = 0.0, 0
    for x, y, _ in loader:
        with torch.set_grad_enabled(opt is not None):
            loss = nn.functional.smooth_l1_loss(net(x), y, beta=0.1)
        if opt:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item() * len(y)
        n += len(y)
    return total / n


def main():
    seed_all(8)
    t = time.time()
    tr = ListDataset(*build(240, "train", 1), Normalise())
    va = ListDataset(*build(60, "val", 2), Normalise())
    train, val = DataLoader(tr, 24, shuffle=True), DataLoader(va, 60)
    net = detector()
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    log = []
    for e in range(5):
        log.append({"epoch": e, "loss": run_epoch(net, train, opt), "val": run_epoch(net, val)})
        print(time.strftime("%H:%M:%S"), log[-1])
    with open("yoeo.json", "w") as f:
        json.dump(log, f)
    print("total %.2f s" % (time.time() - t))


if __name__ == "__main__":
    main()
