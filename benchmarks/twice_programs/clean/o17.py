"""Small segmentation runner with work_dirs, text log, scalars.json and hooks, in the style of open-mmlab/mmengine (on accelerate)."""
import argparse
import datetime as dt
import json
import logging
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset

CLASSES = ("background", "disc", "box", "bar")
PALETTE = np.array([[0, 0, 0], [220, 60, 60], [60, 200, 90], [70, 90, 230]], np.uint8)


def draw_dataset(root, n, seed, size=48):
    rng = random.Random(seed)
    (root / "img").mkdir(parents=True)
    (root / "ann").mkdir()
    for i in range(n):
        img = Image.new("RGB", (size, size), tuple(rng.randint(20, 90) for _ in range(3)))
        ann = Image.new("L", (size, size), 0)
        for _ in range(rng.randint(1, 3)):
            c = rng.randint(1, 3)
            x, y, s = rng.randint(4, size - 18), rng.randint(4, size - 18), rng.randint(8, 16)
            fill = tuple(min(255, max(0, int(v) + rng.randint(-70, 70))) for v in PALETTE[c])
            box = [x, y, x + s, y + s] if c != 3 else [x, y, x + s, y + 4]
            for d, f in ((ImageDraw.Draw(img), fill), (ImageDraw.Draw(ann), c)):
                (d.ellipse if c == 1 else d.rectangle)(box, fill=f)
        img.save(root / "img" / f"{i:04d}.png")
        ann.save(root / "ann" / f"{i:04d}.png")


class SegDataset(Dataset):
    def __init__(self, root, train):
        self.img = sorted((root / "img").glob("*.png"))
        self.root, self.train = root, train

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        x = torch.from_numpy(np.array(Image.open(self.img[i]))).permute(2, 0, 1).float() / 127.5 - 1
        y = torch.from_numpy(np.array(Image.open(self.root / "ann" / self.img[i].name))).long()
        if self.train and torch.rand(1) < 0.5:
            x, y = x.flip(-1), y.flip(-1)
        return x + (0.1 * torch.randn(x.shape) if self.train else 0), y


class TinyUNet(nn.Module):
    def __init__(self, w=12, classes=len(CLASSES)):
        super().__init__()
        def conv(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.d1, self.d2, self.mid = conv(3, w), conv(w, 2 * w), conv(2 * w, 2 * w)
        self.u2, self.u1, self.head = conv(4 * w, w), conv(2 * w, w), nn.Conv2d(w, classes, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.mid(F.max_pool2d(b, 2))
        u = self.u2(torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        return self.head(self.u1(torch.cat([F.interpolate(u, scale_factor=2), a], 1)))


class Runner:
    def __init__(self, args):
        self.args = args
        self.timestamp = time.strftime("%Y%m%d_%H%M%S")
        self.dir = Path(args.work_dir) / self.timestamp
        (self.dir / "vis_data").mkdir(parents=True)
        self.log = logging.getLogger("mmengine")
        self.log.setLevel(logging.INFO)
        fmt = logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s", "%Y/%m/%d %H:%M:%S")
        for h in (logging.StreamHandler(sys.stdout), logging.FileHandler(self.dir / f"{self.timestamp}.log")):
            h.setFormatter(fmt)
            self.log.addHandler(h)
        self.scalars = open(self.dir / "vis_data" / "scalars.json", "w")
        self.acc = Accelerator(cpu=True)
        env = {"sys.platform": sys.platform, "Python": sys.version.split()[0], "PyTorch": torch.__version__,
               "NumPy": np.__version__, "seed": args.seed, "hostname": os.uname().nodename}
        bar = "-" * 60
        self.log.info("\n" + bar + "\nSystem environment:\n" + "\n".join(f"    {k}: {v}" for k, v in env.items()) + "\n" + bar)
        self.env = env

    def train(self, model, train_loader, val_loader):
        opt = torch.optim.AdamW(model.parameters(), lr=self.args.lr, weight_decay=1e-3)
        total = self.args.epochs * len(train_loader)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, self.args.lr, total_steps=total)
        model, opt, train_loader, val_loader, sched = self.acc.prepare(model, opt, train_loader, val_loader, sched)
        self.log.info(f"Checkpoints will be saved to {self.dir.resolve()}.")
        best, it, t_total = -1.0, 0, 0.0
        for epoch in range(1, self.args.epochs + 1):
            model.train()
            end, buf = time.time(), []
            for i, (x, y) in enumerate(train_loader, 1):
                data_time = time.time() - end
                loss = F.cross_entropy(model(x), y, weight=torch.tensor([0.3, 1, 1, 1.5]))
                opt.zero_grad()
                self.acc.backward(loss)
                gn = self.acc.clip_grad_norm_(model.parameters(), 5.0)
                opt.step()
                sched.step()
                it += 1
                step_time = time.time() - end
                t_total += step_time
                buf.append((step_time, data_time, loss.item(), float(gn)))
                end = time.time()
                if i % self.args.interval == 0:
                    t, d, l, g = (float(v) for v in np.mean(buf, axis=0))
                    buf = []
                    mem = int(psutil.Process().memory_info().rss / 2 ** 20)
                    lr = opt.param_groups[0]["lr"]
                    eta = dt.timedelta(seconds=int(t_total / it * (total - it)))
                    self.log.info(f"Epoch(train) [{epoch}][{i:>3d}/{len(train_loader)}]  lr: {lr:.4e}  eta: {eta}  "
                                  f"time: {t:.4f}  data_time: {d:.4f}  memory: {mem}  grad_norm: {g:.4f}  loss: {l:.4f}")
                    self.scalar(lr=lr, data_time=d, grad_norm=g, loss=l, time=t, epoch=epoch, iter=it, memory=mem, step=it)
            miou = self.val(model, val_loader, epoch)
            self.save(model, opt, epoch, it, f"epoch_{epoch}.pth")
            if miou > best:
                best = miou
                self.save(model, opt, epoch, it, "best_mIoU.pth")
                self.log.info(f"The best checkpoint with {miou:0.4f} mIoU at {epoch} epoch is saved to best_mIoU.pth.")
        return model, best

    @torch.no_grad()
    def val(self, model, loader, epoch):
        model.eval()
        k = len(CLASSES)
        cm = torch.zeros(k, k, dtype=torch.long)
        t0 = time.time()
        for x, y in loader:
            cm += torch.bincount((y * k + model(x).argmax(1)).flatten(), minlength=k * k).view(k, k)
        dt_ = (time.time() - t0) / len(loader)
        inter, union = cm.diag().double(), (cm.sum(0) + cm.sum(1) - cm.diag()).double()
        iou = inter / union.clamp(min=1)
        lines = [f"| {c:<10} | {float(v) * 100:6.2f} |" for c, v in zip(CLASSES, iou)]
        self.log.info("per class results:\n+------------+--------+\n" + "\n".join(lines) + "\n+------------+--------+")
        aacc, miou = float(cm.diag().sum() / cm.sum()), float(iou.mean())
        self.log.info(f"Epoch(val) [{epoch}][{len(loader)}/{len(loader)}]    aAcc: {aacc * 100:.4f}  mIoU: {miou * 100:.4f}  "
                      f"data_time: 0.0000  time: {dt_:.4f}")
        self.scalar(aAcc=aacc, mIoU=miou, time=dt_, step=epoch)
        return miou

    def scalar(self, **kw):
        self.scalars.write(json.dumps(kw) + "\n")
        self.scalars.flush()

    def save(self, model, opt, epoch, it, name):
        torch.save({"meta": {"epoch": epoch, "iter": it, "experiment_name": f"unet_{self.timestamp}", "env": self.env,
                             "time": self.timestamp, "dataset_meta": {"classes": CLASSES}},
                    "state_dict": self.acc.unwrap_model(model).state_dict(), "optimizer": opt.state_dict()}, self.dir / name)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--work-dir", default="work_dirs/unet_shapes")
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=8e-3)
    ap.add_argument("--interval", type=int, default=5)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--seed", type=int, default=2023)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    data = Path("data/shapes")
    draw_dataset(data / "train", 160, 1)
    draw_dataset(data / "val", 48, 2)
    runner = Runner(args)
    gen = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(SegDataset(data / "train", True), 16, shuffle=True, num_workers=args.workers, generator=gen)
    val_set = SegDataset(data / "val", False)
    model, best = runner.train(TinyUNet(), train_loader, DataLoader(val_set, 16))
    model.eval()
    (runner.dir / "vis_data" / "vis_image").mkdir()
    for i in range(4):
        with torch.no_grad():
            pred = model(val_set[i][0][None]).argmax(1)[0].numpy()
        Image.fromarray(PALETTE[pred]).save(runner.dir / "vis_data" / "vis_image" / f"val_{i}.png")
    (Path(args.work_dir) / "last_checkpoint").write_text(str(runner.dir / f"epoch_{args.epochs}.pth"))
    runner.log.info(f"Done, best mIoU {best * 100:.4f}")


if __name__ == "__main__":
    main()
