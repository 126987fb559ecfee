"""Self-distillation without labels on small synthetic images, then a k-NN check.

Modelled on: facebookresearch/dino (main_dino.py, utils.py MetricLogger, eval_knn.py): lines
"Epoch: [0/4]  [ 10/20]  eta: 0:00:01  loss: .. (..)  lr: ..  time: ..  data: ..",
"Total time: ..", log.txt with one JSON object per epoch, checkpoint.pth.
"""
import argparse
import datetime
import json
import os
import resource
import sys
import time
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Smoothed:
    def __init__(self, window=20, fmt="{median:.6f} ({avg:.6f})"):
        self.d, self.total, self.n, self.fmt = deque(maxlen=window), 0.0, 0, fmt

    def update(self, v):
        self.d.append(v)
        self.total += v
        self.n += 1

    @property
    def global_avg(self):
        return self.total / self.n

    def __str__(self):
        return self.fmt.format(median=float(np.median(self.d)), avg=self.global_avg)


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters, self.delimiter = defaultdict(Smoothed), delimiter

    def update(self, **kw):
        for k, v in kw.items():
            self.meters[k].update(float(v))

    def log_every(self, it, freq, header):
        start = end = time.time()
        t_iter, t_data = Smoothed(fmt="{avg:.6f}"), Smoothed(fmt="{avg:.6f}")
        width = len(str(len(it)))
        for i, obj in enumerate(it):
            t_data.update(time.time() - end)
            yield obj
            t_iter.update(time.time() - end)
            if i % freq == 0 or i == len(it) - 1:
                eta = datetime.timedelta(seconds=int(t_iter.global_avg * (len(it) - i)))
                mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                parts = [header, f"[{i:{width}d}/{len(it)}]", f"eta: {eta}"]
                parts += [f"{k}: {m}" for k, m in self.meters.items()]
                parts += [f"time: {t_iter}", f"data: {t_data}", f"max mem: {mem:.0f}"]
                print(self.delimiter.join(parts), flush=True)
            end = time.time()
        total = time.time() - start
        print(f"{header} Total time: {datetime.timedelta(seconds=int(total))} ({total / len(it):.6f} s / it)")


class Images(torch.utils.data.Dataset):
    """Five kinds of gratings with noise."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, 5, n)
        g = np.linspace(0, 2 * np.pi, 12)
        xx, yy = np.meshgrid(g, g)
        ang = self.y * np.pi / 5
        waves = np.sin(2 * (np.cos(ang)[:, None, None] * xx + np.sin(ang)[:, None, None] * yy))
        self.x = (waves + 0.6 * rng.standard_normal(waves.shape)).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i])[None], int(self.y[i])


class Net(nn.Module):
    def __init__(self, dim=32, out=64):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.GELU(), nn.Conv2d(8, 16, 3, 2, 1), nn.GELU(),
                                      nn.Flatten(), nn.Linear(16 * 9, dim))
        self.head = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, out))

    def forward(self, x):
        return self.head(self.backbone(x))


def augment(x, gen):
    noise = 0.3 * torch.randn(x.shape, generator=gen)
    scale = 0.7 + 0.6 * torch.rand(len(x), 1, 1, 1, generator=gen)
    return x * scale + noise


def cosine(base, final, n):
    return final + 0.5 * (base - final) * (1 + np.cos(np.pi * np.arange(n) / n))


@torch.no_grad()
def knn(net, train, test, k=10):
    f = [F.normalize(net.backbone(torch.from_numpy(d.x)[:, None]), dim=1) for d in (train, test)]
    idx = (f[1] @ f[0].T).topk(k, dim=1).indices
    votes = F.one_hot(torch.from_numpy(train.y)[idx], 5).sum(1)
    return 100.0 * (votes.argmax(1) == torch.from_numpy(test.y)).double().mean().item()


def main(args):
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    torch.set_num_threads(1)
    print("\n".join("%s: %s" % kv for kv in sorted(vars(args).items())))
    train, test = Images(768, 1), Images(200, 2)
    gen = torch.Generator().manual_seed(args.seed)
    loader = torch.utils.data.DataLoader(train, batch_size=48, shuffle=True, drop_last=True, generator=gen)
    print(f"Data loaded: there are {len(train)} images.")
    student, teacher = Net(), Net()
    teacher.load_state_dict(student.state_dict())
    teacher.requires_grad_(False)
    opt = torch.optim.AdamW(student.parameters(), lr=0)
    n = args.epochs * len(loader)
    lrs, moms = cosine(args.lr, 1e-5, n), cosine(0.99, 1.0, n)
    center = torch.zeros(1, 64)
    out = Path(args.output_dir)
    out.mkdir(parents=True, exist_ok=True)
    print("Starting DINO training !")
    start = time.time()
    for epoch in range(args.epochs):
        logger = MetricLogger()
        for it, (x, _) in enumerate(logger.log_every(loader, 5, f"Epoch: [{epoch}/{args.epochs}]")):
            it += epoch * len(loader)
            opt.param_groups[0]["lr"] = lrs[it]
            views = [augment(x, gen) for _ in range(2)]
            with torch.no_grad():
                t_out = [teacher(v) for v in views]
                q = [F.softmax((t - center) / 0.05, dim=-1) for t in t_out]
            s = [F.log_softmax(student(v) / 0.1, dim=-1) for v in views]
            loss = -0.5 * ((q[0] * s[1]).sum(-1).mean() + (q[1] * s[0]).sum(-1).mean())
            if not np.isfinite(loss.item()):
                print(f"Loss is {loss.item()}, stopping training")
                sys.exit(1)
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                center = center * 0.9 + torch.cat(t_out).mean(0, keepdim=True) * 0.1
                for ps, pt in zip(student.parameters(), teacher.parameters()):
                    pt.mul_(moms[it]).add_((1 - moms[it]) * ps)
            logger.update(loss=loss.item(), lr=lrs[it])
        stats = {f"train_{k}": m.global_avg for k, m in logger.meters.items()}
        print("Averaged stats:", logger.delimiter.join(f"{k}: {v:.6f}" for k, v in stats.items()))
        with (out / "log.txt").open("a") as f:
            f.write(json.dumps({**stats, "epoch": epoch, "knn_top1": knn(teacher, train, test)}) + "\n")
        torch.save({"student": student.state_dict(), "teacher": teacher.state_dict(), "optimizer": opt.state_dict(),
                    "epoch": epoch + 1, "args": args, "center": center}, out / "checkpoint.pth")
    total = time.time() - start
    print("Training time {}".format(datetime.timedelta(seconds=int(total))), f"({total:.3f} s)")
    print(f"10-NN classifier result: Top1: {knn(teacher, train, test)}")


if __name__ == "__main__":
    p = argparse.ArgumentParser("DINO")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--output_dir", default="dino_out")
    main(p.parse_args())
