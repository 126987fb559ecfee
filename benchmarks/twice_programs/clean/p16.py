"""A small two-headed detector trained on drawn shapes, with the log lines and files of MMDetection.

Log format: https://github.com/open-mmlab/mmdetection/issues/2672
(mmdet - INFO - Epoch [1][2400/7517] lr, eta, time, data_time, memory, losses); files named by the time of the start,
20200508_185616.log and .log.json.
"""
import collections
import datetime
import json
import logging
import os
import platform
import resource
import socket
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, CLASSES, EPOCHS, BATCH, INTERVAL, SEED = 32, 4, 3, 16, 10, 42
STAMP = time.strftime("%Y%m%d_%H%M%S", time.localtime())


def get_logger():
    logger = logging.getLogger("mmdet")
    logger.setLevel(logging.INFO)
    fmt = logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    for h in (logging.StreamHandler(sys.stdout), logging.FileHandler(f"{STAMP}.log")):
        h.setFormatter(fmt)
        logger.addHandler(h)
    return logger


class Shapes(Dataset):
    """One shape in each image; the pixels come from the index alone."""

    def __init__(self, n, offset):
        self.n, self.offset = n, offset

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.offset + i)
        img = rng.normal(0, 0.25, (1, SIZE, SIZE)).astype(np.float32)
        label = int(rng.integers(CLASSES))
        w, h = rng.integers(8, 18, 2)
        x, y = rng.integers(0, SIZE - w), rng.integers(0, SIZE - h)
        yy, xx = np.mgrid[0:h, 0:w]
        if label == 0:
            m = np.ones((h, w), bool)
        elif label == 1:
            m = ((xx - w / 2) / (w / 2)) ** 2 + ((yy - h / 2) / (h / 2)) ** 2 <= 1
        elif label == 2:
            m = yy >= np.abs(xx - w / 2) * 2 * h / w
        else:
            m = (xx + yy) % 4 < 2
        img[0, y:y + h, x:x + w][m] += 1.0
        box = np.array([x + w / 2, y + h / 2, w, h], np.float32) / SIZE
        return img, label, box


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        layers, c = [], 1
        for out in (12, 24, 32):
            layers += [nn.Conv2d(c, out, 3, stride=2, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
            c = out
        self.backbone = nn.Sequential(*layers)
        self.cls = nn.Linear(32 * 16, CLASSES)
        self.reg = nn.Linear(32 * 16, 4)

    def forward(self, x):
        f = self.backbone(x).flatten(1)
        return self.cls(f), self.reg(f).sigmoid()


def iou(a, b):
    al, ah, bl, bh = a[:, :2] - a[:, 2:] / 2, a[:, :2] + a[:, 2:] / 2, b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2
    inter = (torch.minimum(ah, bh) - torch.maximum(al, bl)).clamp(min=0).prod(1)
    return inter / (a[:, 2:].prod(1) + b[:, 2:].prod(1) - inter)


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main():
    logger = get_logger()
    logger.info("Environment info:\n%s\nsys.platform: %s\nPython: %s\nPyTorch: %s\nGCC: n/a\nnode: %s\n%s", "-" * 60,
                sys.platform, platform.python_version(), torch.__version__, socket.gethostname(), "-" * 60)
    logger.info("Set random seed to %d, deterministic: True", SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    train = Shapes(640, 0)
    val = Shapes(320, 10 ** 6)
    gen = torch.Generator().manual_seed(SEED)
    loader = DataLoader(train, BATCH, shuffle=True, generator=gen, num_workers=1, persistent_workers=True)
    val_loader = DataLoader(val, 40)
    model = Detector()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    user = os.environ.get("USER", "root")
    logger.info("Start running, host: %s@%s, work_dir: %s", user, socket.gethostname(), os.getcwd())
    logger.info("workflow: [('train', 1)], max: %d epochs", EPOCHS)
    jlog = open(f"{STAMP}.log.json", "w")
    jlog.write(json.dumps({"seed": SEED, "exp_name": "shapes.py", "pid": os.getpid()}) + "\n")
    max_iters, it, t_run = EPOCHS * len(loader), 0, time.time()
    for epoch in range(1, EPOCHS + 1):
        model.train()
        buf = collections.defaultdict(list)
        t_iter = time.time()
        for i, (img, label, box) in enumerate(loader, 1):
            buf["data_time"].append(time.time() - t_iter)
            lr = 0.02 * min(1.0, (it + 1) / 40) * (0.1 if epoch == EPOCHS else 1.0)
            for g in opt.param_groups:
                g["lr"] = lr
            logits, pred = model(img)
            loss_cls = nn.functional.cross_entropy(logits, label)
            loss_bbox = 5 * nn.functional.smooth_l1_loss(pred, box, beta=0.1)
            loss = loss_cls + loss_bbox
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 35)
            opt.step()
            it += 1
            for k, v in (("loss_cls", loss_cls), ("loss_bbox", loss_bbox), ("loss", loss), ("grad_norm", norm)):
                buf[k].append(v.item())
            buf["acc"].append(100.0 * (logits.argmax(1) == label).float().mean().item())
            buf["time"].append(time.time() - t_iter)
            t_iter = time.time()
            if i % INTERVAL == 0:
                m = {k: sum(v) / len(v) for k, v in buf.items()}
                eta = datetime.timedelta(seconds=int((time.time() - t_run) / it * (max_iters - it)))
                logger.info("Epoch [%d][%d/%d]\tlr: %.3e, eta: %s, time: %.3f, data_time: %.3f, memory: %d, loss_cls: %.4f, "
                            "acc: %.4f, loss_bbox: %.4f, loss: %.4f, grad_norm: %.4f", epoch, i, len(loader), lr, eta,
                            m["time"], m["data_time"], memory(), m["loss_cls"], m["acc"], m["loss_bbox"], m["loss"], m["grad_norm"])
                jlog.write(json.dumps({"mode": "train", "epoch": epoch, "iter": i, "lr": round(lr, 5), "memory": memory(),
                                       **{k: round(v, 5) for k, v in sorted(m.items())}}) + "\n")
                buf.clear()
        logger.info("Saving checkpoint at %d epochs", epoch)
        torch.save({"meta": {"epoch": epoch, "iter": it, "time": time.asctime(), "mmdet_version": "2.0.0"},
                    "state_dict": model.state_dict(), "optimizer": opt.state_dict()}, f"epoch_{epoch}.pth")
        model.eval()
        hits, ious, t0 = 0, [], time.time()
        with torch.no_grad():
            for img, label, box in val_loader:
                logits, pred = model(img)
                hits += int((logits.argmax(1) == label).sum())
                ious.append(iou(pred, box))
        ious = torch.cat(ious)
        dt = time.time() - t0
        print(f"[{'>' * 30}] {len(val)}/{len(val)}, {len(val) / dt:.1f} task/s, elapsed: {dt:.0f}s, ETA: 0s", file=sys.stderr)
        ap50 = (ious > 0.5).float().mean().item()
        logger.info("Epoch(val) [%d][%d]\tbbox_mAP_50: %.4f, mIoU: %.4f, acc: %.4f", epoch, len(val_loader), ap50,
                    ious.mean().item(), hits / len(val))
        jlog.write(json.dumps({"mode": "val", "epoch": epoch, "iter": len(val_loader), "bbox_mAP_50": round(ap50, 4),
                               "mIoU": round(ious.mean().item(), 6), "acc": hits / len(val)}) + "\n")
    jlog.close()
    for e in range(1, EPOCHS):
        os.unlink(f"epoch_{e}.pth")


if __name__ == "__main__":
    main()
