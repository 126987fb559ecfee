"""Image classification of the digits data with a runner that logs like mmengine.

Modelled on: open-mmlab/mmpretrain on mmengine (work_dirs/<cfg>/<timestamp>/<timestamp>.log,
vis_data/scalars.json, "Epoch(train) ... eta: ... time: ... data_time: ... memory: ...").
"""
import json
import logging
import os
import os.path as osp
import platform
import resource
import sys
import time
from collections import deque
from datetime import timedelta

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

CFG = dict(
    model=dict(type="ImageClassifier", width=16, num_classes=10),
    data=dict(batch_size=64, val_size=0.25),
    optim_wrapper=dict(type="SGD", lr=0.08, momentum=0.9, weight_decay=1e-4),
    param_scheduler=dict(type="MultiStepLR", milestones=[3, 4], gamma=0.1),
    train_cfg=dict(by_epoch=True, max_epochs=4, val_interval=1),
    default_hooks=dict(logger=dict(type="LoggerHook", interval=10), checkpoint=dict(interval=1, save_best="auto")),
    randomness=dict(seed=3407, deterministic=True),
    work_dir="work_dirs/small_digits",
)


class Net(nn.Module):
    def __init__(self, width, num_classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.head = nn.Linear(8 * width, num_classes)

    def forward(self, x):
        return self.head(self.backbone(x))


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.timestamp = time.strftime("%Y%m%d_%H%M%S", time.localtime())
        self.log_dir = osp.join(cfg["work_dir"], self.timestamp)
        os.makedirs(osp.join(self.log_dir, "vis_data"), exist_ok=True)
        self.logger = self.build_logger()
        self.scalars = open(osp.join(self.log_dir, "vis_data", "scalars.json"), "a")
        with open(osp.join(self.log_dir, "vis_data", "config.json"), "w") as f:
            json.dump(cfg, f, indent=1)
        torch.manual_seed(cfg["randomness"]["seed"])
        np.random.seed(cfg["randomness"]["seed"])
        torch.use_deterministic_algorithms(cfg["randomness"]["deterministic"])
        self.log_env()
        self.build_data()
        m = cfg["model"]
        self.model = Net(m["width"], m["num_classes"])
        o = cfg["optim_wrapper"]
        self.optim = torch.optim.SGD(self.model.parameters(), o["lr"], o["momentum"], weight_decay=o["weight_decay"])
        s = cfg["param_scheduler"]
        self.sched = torch.optim.lr_scheduler.MultiStepLR(self.optim, s["milestones"], s["gamma"])
        self.history = {k: deque(maxlen=10) for k in ("time", "data_time", "loss", "grad_norm")}
        self.iter, self.best = 0, (-1.0, None)

    def build_logger(self):
        logger = logging.getLogger("mmengine")
        logger.setLevel(logging.INFO)
        fmt = logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s", datefmt="%Y/%m/%d %H:%M:%S")
        for h in (logging.StreamHandler(sys.stdout), logging.FileHandler(osp.join(self.log_dir, self.timestamp + ".log"))):
            h.setFormatter(fmt)
            logger.addHandler(h)
        return logger

    def log_env(self):
        env = {"sys.platform": sys.platform, "Python": platform.python_version(), "CUDA available": torch.cuda.is_available(),
               "numpy_random_seed": self.cfg["randomness"]["seed"], "PyTorch": torch.__version__, "Host": platform.node()}
        line = "-" * 60
        self.logger.info("\n" + line + "\nSystem environment:\n" + "\n".join(f"    {k}: {v}" for k, v in env.items()) + "\n" + line)

    def build_data(self):
        x, y = load_digits(return_X_y=True)
        x = (x.reshape(-1, 1, 8, 8) / 16.0).astype(np.float32)
        xt, xv, yt, yv = train_test_split(x, y, test_size=self.cfg["data"]["val_size"], random_state=0, stratify=y)
        self.train_set = (torch.from_numpy(xt), torch.from_numpy(yt))
        self.val_set = (torch.from_numpy(xv), torch.from_numpy(yv))

    def loader(self, epoch):
        g = torch.Generator().manual_seed(self.cfg["randomness"]["seed"] + epoch)
        order = torch.randperm(len(self.train_set[0]), generator=g)
        return order.split(self.cfg["data"]["batch_size"])

    def mean(self, key):
        q = self.history[key]
        return sum(q) / len(q)

    def train_epoch(self, epoch):
        self.model.train()
        batches = self.loader(epoch)
        total = self.cfg["train_cfg"]["max_epochs"] * len(batches)
        end = time.time()
        for i, idx in enumerate(batches, 1):
            x, y = self.train_set[0][idx], self.train_set[1][idx]
            self.history["data_time"].append(time.time() - end)
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optim.zero_grad()
            loss.backward()
            gn = nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
            self.optim.step()
            self.history["loss"].append(loss.item())
            self.history["grad_norm"].append(gn.item())
            self.history["time"].append(time.time() - end)
            end = time.time()
            self.iter += 1
            if i % self.cfg["default_hooks"]["logger"]["interval"] == 0 or i == len(batches):
                lr = self.optim.param_groups[0]["lr"]
                eta = (total - self.iter) * (time.time() - self.t0) / self.iter
                mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                self.logger.info(
                    f"Epoch(train)  [{epoch}][{i:>2}/{len(batches)}]  lr: {lr:.4e}  eta: {timedelta(seconds=int(eta))}  "
                    f"time: {self.mean('time'):.4f}  data_time: {self.mean('data_time'):.4f}  memory: {mem}  "
                    f"grad_norm: {self.mean('grad_norm'):.4f}  loss: {self.mean('loss'):.4f}")
                self.write(lr=lr, data_time=self.mean("data_time"), grad_norm=self.mean("grad_norm"), loss=self.mean("loss"),
                           time=self.mean("time"), epoch=epoch, iter=self.iter, memory=mem, step=self.iter)

    def write(self, **kw):
        self.scalars.write(json.dumps(kw) + "\n")
        self.scalars.flush()

    def val_epoch(self, epoch):
        self.model.eval()
        end, right1, right5, times = time.time(), 0, 0, []
        x, y = self.val_set
        n = 0
        with torch.no_grad():
            for xb, yb in zip(x.split(64), y.split(64)):
                top = self.model(xb).topk(5, 1).indices
                right1 += (top[:, 0] == yb).sum().item()
                right5 += (top == yb[:, None]).any(1).sum().item()
                times.append(time.time() - end)
                end = time.time()
                n += 1
        a1, a5 = 100.0 * right1 / len(x), 100.0 * right5 / len(x)
        self.logger.info(f"Epoch(val) [{epoch}][{n}/{n}]    accuracy/top1: {a1:.4f}  accuracy/top5: {a5:.4f}  "
                         f"data_time: {min(times):.4f}  time: {sum(times) / n:.4f}")
        self.write(**{"accuracy/top1": a1, "accuracy/top5": a5, "data_time": min(times), "time": sum(times) / n, "step": epoch})
        return a1

    def save(self, name, epoch):
        path = osp.join(self.cfg["work_dir"], name)
        torch.save({"meta": {"cfg": self.cfg, "epoch": epoch, "iter": self.iter, "seed": self.cfg["randomness"]["seed"],
                             "experiment_name": f"small_digits_{self.timestamp}", "time": self.timestamp},
                    "state_dict": self.model.state_dict(), "optimizer": self.optim.state_dict()}, path)
        return path

    def train(self):
        self.t0 = time.time()
        self.logger.info(f"Checkpoints will be saved to {osp.abspath(self.cfg['work_dir'])}.")
        for epoch in range(1, self.cfg["train_cfg"]["max_epochs"] + 1):
            self.train_epoch(epoch)
            self.logger.info(f"Exp name: small_digits_{self.timestamp}")
            self.logger.info(f"Saving checkpoint at {epoch} epochs")
            self.save(f"epoch_{epoch}.pth", epoch)
            acc = self.val_epoch(epoch)
            self.sched.step()
            if acc > self.best[0]:
                if self.best[1]:
                    os.remove(self.best[1])
                self.best = (acc, self.save(f"best_accuracy_top1_epoch_{epoch}.pth", epoch))
                self.logger.info(f"The best checkpoint with {acc:.4f} accuracy/top1 at {epoch} epoch is saved to {osp.basename(self.best[1])}.")
        with open(osp.join(self.cfg["work_dir"], "last_checkpoint"), "w") as f:
            f.write(osp.abspath(osp.join(self.cfg["work_dir"], f"epoch_{epoch}.pth")))
        self.scalars.close()


if __name__ == "__main__":
    Runner(CFG).train()
