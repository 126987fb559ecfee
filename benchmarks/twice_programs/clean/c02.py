"""Detection after ultralytics: tables with a bar, results.csv with a time column, checkpoints with a date, args.yaml, curves."""

import csv
import math
import os
import platform
import random
import sys
import time
from copy import deepcopy
from datetime import datetime
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

TQDM_BAR_FORMAT = "{l_bar}{bar:10}{r_bar}"


def colorstr(*args):
    colors = {"blue": "\033[34m", "bold": "\033[1m", "green": "\033[32m", "end": "\033[0m"}
    *names, text = args
    return "".join(colors[n] for n in names) + f"{text}" + colors["end"]


def increment_path(path):
    n = 2
    p = Path(path)
    while p.exists():
        p = Path(f"{path}{n}")
        n += 1
    return p


class Boxes(Dataset):
    def __init__(self, n, seed):
        g = np.random.default_rng(seed)
        self.box = g.uniform(0.2, 0.8, (n, 4)).astype("float32")
        self.cls = g.integers(0, 3, n)
        self.img = g.normal(0, 0.1, (n, 1, 16, 16)).astype("float32")
        for i in range(n):
            cx, cy = (self.box[i, :2] * 16).astype(int)
            self.img[i, 0, max(cy - 2, 0) : cy + 2, max(cx - 2, 0) : cx + 2] += 1 + self.cls[i]

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i], self.box[i], self.cls[i]


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.SiLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.SiLU())
        self.box = nn.Linear(256, 4)
        self.cls = nn.Linear(256, 3)

    def forward(self, x):
        x = self.body(x).flatten(1)
        return self.box(x).sigmoid(), self.cls(x)


class ModelEMA:
    def __init__(self, model, decay=0.99, tau=20):
        self.ema = deepcopy(model).eval()
        self.updates = 0
        self.decay = lambda x: decay * (1 - math.exp(-x / tau))

    def update(self, model):
        self.updates += 1
        d = self.decay(self.updates)
        for k, v in self.ema.state_dict().items():
            v.mul_(d).add_(model.state_dict()[k].detach(), alpha=1 - d)


class Profile:
    def __init__(self):
        self.t = 0.0

    def __enter__(self):
        self.start = time.time()
        return self

    def __exit__(self, *_):
        self.dt = time.time() - self.start
        self.t += self.dt


def losses(out, box, cls):
    b = (out[0] - box).abs().mean()
    c = nn.functional.cross_entropy(out[1], cls)
    d = ((out[0][:, 2:] - box[:, 2:]) ** 2).mean()
    return torch.stack([b, c, d])


def validate(model, loader):
    dt = Profile(), Profile(), Profile()
    seen, hit, iou = 0, 0, []
    for img, box, cls in tqdm(loader, desc=("%22s" + "%11s" * 4) % ("Class", "Images", "Instances", "Box(P", "R)"), bar_format=TQDM_BAR_FORMAT):
        with dt[0]:
            img = img.float()
        with dt[1], torch.no_grad():
            p, c = model(img)
        with dt[2]:
            hit += int((c.argmax(1) == cls).sum())
            iou += (1 - (p - box).abs().mean(1)).tolist()
        seen += len(img)
    print(("%22s" + "%11i" * 2 + "%11.3g" * 2) % ("all", seen, seen, hit / seen, float(np.mean(iou))))
    speed = {k: x.t / seen * 1e3 for k, x in zip(["preprocess", "inference", "postprocess"], dt)}
    print("Speed: {preprocess:.1f}ms preprocess, {inference:.1f}ms inference, 0.0ms loss, {postprocess:.1f}ms postprocess per image".format(**speed))
    return {"metrics/precision(B)": hit / seen, "metrics/iou(B)": float(np.mean(iou))}, speed


def main():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    save_dir = increment_path(Path("runs/detect/train"))
    (save_dir / "weights").mkdir(parents=True)
    args = {"epochs": 3, "batch": 16, "lr0": 0.02, "seed": 0, "save_dir": str(save_dir), "project": None}
    print(f"Ultra 8.3.0 🚀 Python-{platform.python_version()} torch-{torch.__version__} CPU ({platform.machine()})")
    print(colorstr("bold", "engine/trainer: ") + ", ".join(f"{k}={v}" for k, v in args.items()))
    (save_dir / "args.yaml").write_text(yaml.safe_dump(args, sort_keys=False))
    t0 = time.time()
    train, val = Boxes(128, 1), Boxes(64, 2)
    print(f"{colorstr('blue', 'bold', 'train: ')}Scanning... {len(train)} images, 0 backgrounds, 0 corrupt ({time.time() - t0:.1f}s)")
    loader = DataLoader(train, 16, shuffle=True)
    vloader = DataLoader(val, 32)
    model = Detector()
    ema = ModelEMA(model)
    opt = torch.optim.SGD(model.parameters(), args["lr0"], momentum=0.9, nesterov=True)
    print(f"Logging results to {colorstr('bold', save_dir)}\nStarting training for {args['epochs']} epochs...")
    best_fitness, start = None, time.time()
    history = []
    for epoch in range(args["epochs"]):
        model.train()
        print(("\n" + "%11s" * 7) % ("Epoch", "GPU_mem", "box_loss", "cls_loss", "dfl_loss", "Instances", "Size"))
        pbar = tqdm(enumerate(loader), total=len(loader), bar_format=TQDM_BAR_FORMAT, file=sys.stderr)
        tloss = None
        for i, (img, box, cls) in pbar:
            items = losses(model(img), box, cls)
            items.sum().backward()
            opt.step()
            opt.zero_grad()
            ema.update(model)
            tloss = items.detach() if tloss is None else (tloss * i + items.detach()) / (i + 1)
            pbar.set_description(("%11s" * 2 + "%11.4g" * 5) % (f"{epoch + 1}/{args['epochs']}", f"{0:.3g}G", *tloss.tolist(), len(cls), img.shape[-1]))
        metrics, speed = validate(ema.ema, vloader)
        metrics = {**dict(zip(["train/box_loss", "train/cls_loss", "train/dfl_loss"], [round(float(x), 5) for x in tloss])), **metrics}
        keys, vals = list(metrics), list(metrics.values())
        n = len(metrics) + 2
        t = time.time() - start
        s = "" if (save_dir / "results.csv").exists() else ("%s," * n % ("epoch", "time", *keys)).rstrip(",") + "\n"
        with open(save_dir / "results.csv", "a") as f:
            f.write(s + ("%.6g," * n % (epoch + 1, t, *vals)).rstrip(",") + "\n")
        fitness = metrics["metrics/precision(B)"]
        if best_fitness is None or fitness > best_fitness:
            best_fitness = fitness
        ckpt = {
            "epoch": epoch,
            "best_fitness": best_fitness,
            "model": None,
            "ema": ema.ema.state_dict(),
            "updates": ema.updates,
            "optimizer": opt.state_dict(),
            "train_args": args,
            "train_metrics": {**metrics, "fitness": fitness},
            "date": datetime.now().isoformat(),
            "version": "8.3.0",
        }
        torch.save(ckpt, save_dir / "weights/last.pt")
        if best_fitness == fitness:
            torch.save(ckpt, save_dir / "weights/best.pt")
        history.append(vals)
    print(f"\n{epoch + 1} epochs completed in {(time.time() - start) / 3600:.3f} hours.")
    for f in "last", "best":
        p = save_dir / f"weights/{f}.pt"
        x = torch.load(p, weights_only=False)
        x["optimizer"] = x["best_fitness"] = None
        x["epoch"] = -1
        torch.save(x, p)
        print(f"Optimizer stripped from {p}, {os.path.getsize(p) / 1e6:.1f}MB")
    fig, ax = plt.subplots(1, 5, figsize=(10, 2), tight_layout=True)
    with open(save_dir / "results.csv") as f:
        rows = list(csv.DictReader(f))
    for a, k in zip(ax, keys):
        a.plot([int(r["epoch"]) for r in rows], [float(r[k]) for r in rows], marker=".", label=k)
        a.set_title(k, fontsize=8)
    fig.savefig(save_dir / "results.png", dpi=80)
    print(f"Results saved to {colorstr('bold', save_dir)}")


if __name__ == "__main__":
    main()
