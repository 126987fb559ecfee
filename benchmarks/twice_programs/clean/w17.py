"""Segmentation trainer after the OpenMMLab runner: work_dirs/<exp>/<timestamp>/ with .log,
vis_data/scalars.json, TensorBoard events, config dump, epoch_N.pth and last_checkpoint."""
import copy
import datetime
import json
import logging
import os
import os.path as osp
import platform
import pprint
import random
import sys
import time
from collections import OrderedDict

import numpy as np
import psutil
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter

cfg = dict(
    model=dict(type="UNetLite", channels=[12, 24, 36], num_classes=4),
    optim_wrapper=dict(optimizer=dict(type="SGD", lr=0.08, momentum=0.9, weight_decay=0.0005), clip_grad=dict(max_norm=8)),
    param_scheduler=[dict(type="LinearLR", start_factor=0.1, end=10), dict(type="PolyLR", power=0.9, eta_min=1e-4)],
    train_cfg=dict(max_epochs=4, val_interval=1),
    train_dataloader=dict(batch_size=8, num=128),
    val_dataloader=dict(batch_size=16, num=48),
    default_hooks=dict(logger=dict(interval=8), checkpoint=dict(interval=2, save_best="mIoU")),
    img_size=32,
    classes=("background", "disk", "square", "stripe"),
    randomness=dict(seed=2021, deterministic=True),
    work_dir="work_dirs/unetlite_shapes",
    experiment_name=None,
)


class MMFormatter(logging.Formatter):
    def format(self, r):
        t = datetime.datetime.fromtimestamp(r.created).strftime("%m/%d %H:%M:%S")
        return f"{t} - mmengine - {r.levelname} - {r.getMessage()}"


class Shapes:
    """Images with a disk, a square and stripes at random places."""

    def __init__(self, num, size, seed):
        rng = np.random.RandomState(seed)
        yy, xx = np.mgrid[0:size, 0:size]
        self.img, self.seg = [], []
        for _ in range(num):
            img = rng.rand(3, 1, 1) * 0.3 + rng.randn(3, size, size) * 0.12
            seg = np.zeros((size, size), dtype=np.int64)
            for cls in rng.permutation([1, 2, 3]):
                cx, cy, r = rng.randint(5, size - 5), rng.randint(5, size - 5), rng.randint(4, 8)
                if cls == 1:
                    m = (xx - cx) ** 2 + (yy - cy) ** 2 <= r * r
                elif cls == 2:
                    m = (abs(xx - cx) <= r) & (abs(yy - cy) <= r - 1)
                else:
                    m = (abs(yy - cy) <= 2) & (xx % 4 < 3)
                img[:, m] += (0.4 + 0.6 * rng.rand(3))[:, None]
                seg[m] = cls
            self.img.append(img.astype("float32"))
            self.seg.append(seg)

    def batch(self, idx):
        return torch.from_numpy(np.stack([self.img[i] for i in idx])), torch.from_numpy(np.stack([self.seg[i] for i in idx]))


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNetLite(nn.Module):
    def __init__(self, channels, num_classes):
        super().__init__()
        a, b, c = channels
        self.e1, self.e2, self.e3 = conv(3, a), conv(a, b), conv(b, c)
        self.d2, self.d1 = conv(c + b, b), conv(b + a, a)
        self.decode_head = nn.Conv2d(a, num_classes, 1)
        self.auxiliary_head = nn.Conv2d(b, num_classes, 1)

    def forward(self, x):
        x1 = self.e1(x)
        x2 = self.e2(F.max_pool2d(x1, 2))
        x3 = self.e3(F.max_pool2d(x2, 2))
        y2 = self.d2(torch.cat([F.interpolate(x3, scale_factor=2), x2], 1))
        y1 = self.d1(torch.cat([F.interpolate(y2, scale_factor=2), x1], 1))
        return self.decode_head(y1), self.auxiliary_head(y2)

    def loss(self, x, seg):
        main, aux = self(x)
        aux_t = seg[:, ::2, ::2]
        acc = (main.argmax(1) == seg).float().mean() * 100
        return OrderedDict([("decode.loss_ce", F.cross_entropy(main, seg)), ("decode.acc_seg", acc),
                            ("aux.loss_ce", 0.4 * F.cross_entropy(aux, aux_t))])


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.timestamp = time.strftime("%Y%m%d_%H%M%S", time.localtime())
        self.experiment_name = f"{osp.basename(cfg['work_dir'])}_{self.timestamp}"
        self.log_dir = osp.join(cfg["work_dir"], self.timestamp)
        self.vis = osp.join(self.log_dir, "vis_data")
        os.makedirs(self.vis, exist_ok=True)
        self.logger = logging.getLogger("mmengine")
        self.logger.setLevel(logging.INFO)
        for h in (logging.StreamHandler(sys.stdout), logging.FileHandler(osp.join(self.log_dir, f"{self.timestamp}.log"))):
            h.setFormatter(MMFormatter())
            self.logger.addHandler(h)
        self.seed_all(cfg["randomness"]["seed"])
        self.log_env()
        dump = dict(copy.deepcopy(cfg), experiment_name=self.experiment_name, launcher="none")
        for p in (osp.join(self.vis, "config.py"), osp.join(cfg["work_dir"], "unetlite_shapes.py")):
            with open(p, "w") as f:
                f.write("\n".join(f"{k} = {pprint.pformat(v)}" for k, v in dump.items()) + "\n")
        self.tb = SummaryWriter(self.vis)
        mc = dict(cfg["model"])
        mc.pop("type")
        self.model = UNetLite(**mc)
        oc = dict(cfg["optim_wrapper"]["optimizer"])
        oc.pop("type")
        self.optimizer = torch.optim.SGD(self.model.parameters(), **oc)
        self.base_lr = oc["lr"]
        self.train_set = Shapes(cfg["train_dataloader"]["num"], cfg["img_size"], 1)
        self.val_set = Shapes(cfg["val_dataloader"]["num"], cfg["img_size"], 2)
        self.gen = torch.Generator().manual_seed(cfg["randomness"]["seed"])
        self.proc = psutil.Process()
        self.iter, self.best = 0, None
        self.window = {"time": [], "data_time": []}

    def seed_all(self, seed):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)

    def log_env(self):
        info = OrderedDict([("sys.platform", sys.platform), ("Python", sys.version.replace("\n", "")), ("CUDA available", False),
                            ("PyTorch", torch.__version__), ("NumPy", np.__version__), ("Hostname", platform.node()),
                            ("Available memory (GB)", f"{psutil.virtual_memory().available / 2 ** 30:.2f}")])
        dash = "-" * 60
        self.logger.info("\n%s\nSystem environment:\n%s\n\nRuntime environment:\n    seed: %s\n%s", dash,
                         "\n".join(f"    {k}: {v}" for k, v in info.items()), self.cfg["randomness"]["seed"], dash)

    def scalars(self, d, step):
        with open(osp.join(self.vis, "scalars.json"), "a") as f, open(osp.join(self.vis, f"{self.timestamp}.json"), "a") as g:
            for h in (f, g):
                h.write(json.dumps(d) + "\n")
        for k, v in d.items():
            if k not in ("step", "iter", "epoch"):
                self.tb.add_scalar(k, v, step)

    def set_lr(self, total):
        w, p = self.cfg["param_scheduler"]
        if self.iter < w["end"]:
            lr = self.base_lr * (w["start_factor"] + (1 - w["start_factor"]) * self.iter / w["end"])
        else:
            lr = (self.base_lr - p["eta_min"]) * (1 - self.iter / total) ** p["power"] + p["eta_min"]
        self.optimizer.param_groups[0]["lr"] = lr
        return lr

    def train_epoch(self, epoch):
        bs, n = self.cfg["train_dataloader"]["batch_size"], self.cfg["train_dataloader"]["num"]
        order = torch.randperm(n, generator=self.gen).tolist()
        nb, max_epochs = n // bs, self.cfg["train_cfg"]["max_epochs"]
        total, interval = nb * max_epochs, self.cfg["default_hooks"]["logger"]["interval"]
        self.model.train()
        buf, tic = [], time.time()
        for i in range(nb):
            x, seg = self.train_set.batch(order[i * bs:(i + 1) * bs])
            self.window["data_time"].append(time.time() - tic)
            lr = self.set_lr(total)
            losses = self.model.loss(x, seg)
            loss = sum(v for k, v in losses.items() if "loss" in k)
            self.optimizer.zero_grad()
            loss.backward()
            gn = nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg["optim_wrapper"]["clip_grad"]["max_norm"])
            self.optimizer.step()
            self.iter += 1
            self.window["time"].append(time.time() - tic)
            tic = time.time()
            buf.append({"grad_norm": gn.item(), "loss": loss.item(), **{k: v.item() for k, v in losses.items()}})
            if (i + 1) % interval == 0:
                avg = {k: float(np.mean([b[k] for b in buf[-interval:]])) for k in buf[0]}
                t, dt = (float(np.mean(self.window[k][-interval:])) for k in ("time", "data_time"))
                eta = datetime.timedelta(seconds=int(np.mean(self.window["time"]) * (total - self.iter)))
                mem = int(self.proc.memory_info().rss / 2 ** 20)
                self.logger.info("Epoch(train)  [%d][%3d/%d]  lr: %.4e  eta: %s  time: %.4f  data_time: %.4f  memory: %d  %s",
                                 epoch, i + 1, nb, lr, eta, t, dt, mem, "  ".join(f"{k}: {v:.4f}" for k, v in avg.items()))
                self.scalars({"lr": lr, "data_time": dt, **avg, "time": t, "epoch": epoch, "iter": self.iter, "memory": mem,
                              "step": self.iter}, self.iter)

    @torch.no_grad()
    def val_epoch(self, epoch):
        self.model.eval()
        n, bs, C = self.cfg["val_dataloader"]["num"], self.cfg["val_dataloader"]["batch_size"], self.cfg["model"]["num_classes"]
        inter, union = np.zeros(C), np.zeros(C)
        times = []
        for i in range(0, n, bs):
            tic = time.time()
            x, seg = self.val_set.batch(range(i, i + bs))
            pred = self.model(x)[0].argmax(1)
            for c in range(C):
                inter[c] += ((pred == c) & (seg == c)).sum().item()
                union[c] += ((pred == c) | (seg == c)).sum().item()
            times.append(time.time() - tic)
        iou = 100 * inter / np.maximum(union, 1)
        self.logger.info("per class results:\n\n+------------+-------+\n|   Class    |  IoU  |\n+------------+-------+\n%s\n+------------+-------+",
                         "\n".join(f"| {c:>10} | {v:5.2f} |" for c, v in zip(self.cfg["classes"], iou)))
        t = float(np.mean(times))
        self.logger.info("Epoch(val) [%d][%d/%d]    mIoU: %.4f  data_time: %.4f  time: %.4f", epoch, n // bs, n // bs, iou.mean(), t * 0.1, t)
        self.scalars({"mIoU": float(iou.mean()), "data_time": t * 0.1, "time": t, "step": epoch}, epoch)
        return float(iou.mean())

    def save(self, name, epoch):
        path = osp.join(self.cfg["work_dir"], name)
        torch.save({"meta": {"epoch": epoch, "iter": self.iter, "experiment_name": self.experiment_name,
                             "time": time.strftime("%Y%m%d_%H%M%S"), "seed": self.cfg["randomness"]["seed"],
                             "dataset_meta": {"classes": self.cfg["classes"]}},
                    "state_dict": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, path)
        with open(osp.join(self.cfg["work_dir"], "last_checkpoint"), "w") as f:
            f.write(path)

    def train(self):
        self.logger.info("Checkpoints will be saved to %s.", osp.abspath(self.cfg["work_dir"]))
        for epoch in range(1, self.cfg["train_cfg"]["max_epochs"] + 1):
            self.train_epoch(epoch)
            self.logger.info("Exp name: %s", self.experiment_name)
            miou = self.val_epoch(epoch)
            if self.best is None or miou > self.best[0]:
                if self.best:
                    os.remove(osp.join(self.cfg["work_dir"], self.best[1]))
                self.best = (miou, f"best_mIoU_epoch_{epoch}.pth")
                self.save(self.best[1], epoch)
                self.logger.info("The best checkpoint with %.4f mIoU at %d epoch is saved to %s.", miou, epoch, self.best[1])
            if epoch % self.cfg["default_hooks"]["checkpoint"]["interval"] == 0:
                self.logger.info("Saving checkpoint at %d epochs", epoch)
                self.save(f"epoch_{epoch}.pth", epoch)
        self.tb.close()


if __name__ == "__main__":
    Runner(cfg).train()
