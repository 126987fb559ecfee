"""ImageNet-style training script (timm flavour) on synthetic 3-class texture images.

Writes output/train/<date>-<model>/ with args.yaml, summary.csv, checkpoint-N.pth.tar,
model_best.pth.tar.
"""
import argparse
import csv
import logging
import math
import os
import shutil
import time
from collections import OrderedDict
from datetime import datetime

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml
from torch.utils.data import DataLoader, Dataset

_logger = logging.getLogger("train")


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class TextureDataset(Dataset):
    def __init__(self, n, size, num_classes, seed):
        rng = np.random.RandomState(seed)
        self.targets = rng.randint(0, num_classes, n)
        yy, xx = np.mgrid[0:size, 0:size] / size
        imgs = []
        for t in self.targets:
            freq, ph = 2 + 2 * t + rng.rand(), rng.rand() * 6.28
            ang = rng.rand() * math.pi
            g = np.sin(2 * math.pi * freq * (xx * math.cos(ang) + yy * math.sin(ang)) + ph)
            col = 0.5 + 0.5 * rng.rand(3, 1, 1)
            imgs.append((col * g[None] + rng.randn(3, size, size) * 0.6).astype("float32"))
        self.imgs = np.stack(imgs)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return torch.from_numpy(self.imgs[i]), int(self.targets[i])


class ConvBnAct(nn.Sequential):
    def __init__(self, i, o, k=3, s=1, g=1):
        super().__init__(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), nn.SiLU())


class MBBlock(nn.Module):
    def __init__(self, i, o, s, exp=3, drop_path=0.05):
        super().__init__()
        m = i * exp
        self.body = nn.Sequential(ConvBnAct(i, m, 1), ConvBnAct(m, m, 3, s, m), nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o))
        self.skip = s == 1 and i == o
        self.dp = drop_path

    def forward(self, x):
        y = self.body(x)
        if not self.skip:
            return y
        if self.training and self.dp > 0:
            keep = torch.rand(x.size(0), 1, 1, 1) >= self.dp
            y = y * keep / (1 - self.dp)
        return x + y


def tiny_effnet(num_classes):
    return nn.Sequential(ConvBnAct(3, 12, 3, 2), MBBlock(12, 12, 1), MBBlock(12, 20, 2), MBBlock(20, 20, 1),
                         MBBlock(20, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1),
                         nn.Linear(32, num_classes))


class ModelEma:
    def __init__(self, model, decay):
        self.decay = decay
        self.state = {k: v.clone() for k, v in model.state_dict().items()}

    def update(self, model):
        for k, v in model.state_dict().items():
            if v.is_floating_point():
                self.state[k].mul_(self.decay).add_(v, alpha=1 - self.decay)
            else:
                self.state[k].copy_(v)


def accuracy(output, target, topk=(1,)):
    _, pred = output.topk(max(topk), 1)
    corr = pred.eq(target.view(-1, 1))
    return [corr[:, :k].any(1).float().mean() * 100.0 for k in topk]


def train_one_epoch(epoch, model, loader, optimizer, args, sched, ema):
    batch_time, data_time, losses = AverageMeter(), AverageMeter(), AverageMeter()
    model.train()
    end = time.time()
    last_idx = len(loader) - 1
    for i, (x, y) in enumerate(loader):
        data_time.update(time.time() - end)
        lr = sched(epoch + i / len(loader))
        for g in optimizer.param_groups:
            g["lr"] = lr
        loss = F.cross_entropy(model(x), y, label_smoothing=args.smoothing)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
        optimizer.step()
        ema.update(model)
        losses.update(loss.item(), x.size(0))
        batch_time.update(time.time() - end)
        if i == last_idx or i % args.log_interval == 0:
            _logger.info(
                f"Train: {epoch} [{i:>4d}/{len(loader)} ({100. * i / last_idx:>3.0f}%)]  "
                f"Loss: {losses.val:#.4g} ({losses.avg:#.3g})  "
                f"Time: {batch_time.val:.3f}s, {x.size(0) / batch_time.val:>7.2f}/s  "
                f"({batch_time.avg:.3f}s, {x.size(0) / batch_time.avg:>7.2f}/s)  "
                f"LR: {lr:.3e}  Data: {data_time.val:.3f} ({data_time.avg:.3f})")
        end = time.time()
    return OrderedDict([("loss", losses.avg)])


@torch.no_grad()
def validate(model, loader, args, log_suffix=""):
    batch_time, losses, top1 = AverageMeter(), AverageMeter(), AverageMeter()
    model.eval()
    end = time.time()
    for i, (x, y) in enumerate(loader):
        out = model(x)
        losses.update(F.cross_entropy(out, y).item(), x.size(0))
        top1.update(accuracy(out, y)[0].item(), x.size(0))
        batch_time.update(time.time() - end)
        end = time.time()
        if i == len(loader) - 1:
            _logger.info(f"Test{log_suffix}: [{i:>4d}/{len(loader) - 1}]  Time: {batch_time.val:.3f} ({batch_time.avg:.3f})  "
                         f"Loss: {losses.val:>7.3f} ({losses.avg:>6.3f})  Acc@1: {top1.val:>7.3f} ({top1.avg:>7.3f})")
    return OrderedDict([("loss", losses.avg), ("top1", top1.avg)])


def update_summary(epoch, train_m, eval_m, filename, lr, epoch_time, write_header):
    row = OrderedDict(epoch=epoch)
    row.update([("train_" + k, v) for k, v in train_m.items()])
    row.update([("eval_" + k, v) for k, v in eval_m.items()])
    row["lr"] = lr
    row["epoch_time"] = epoch_time
    with open(filename, "a") as cf:
        dw = csv.DictWriter(cf, fieldnames=row.keys())
        if write_header:
            dw.writeheader()
        dw.writerow(row)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="tiny_effnet")
    p.add_argument("--output", default="output/train")
    p.add_argument("--experiment", default="")
    p.add_argument("--num-classes", type=int, default=3)
    p.add_argument("--img-size", type=int, default=24)
    p.add_argument("-b", "--batch-size", type=int, default=32)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--smoothing", type=float, default=0.1)
    p.add_argument("--clip-grad", type=float, default=2.0)
    p.add_argument("--model-ema-decay", type=float, default=0.95)
    p.add_argument("--log-interval", type=int, default=8)
    p.add_argument("--seed", type=int, default=42)
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    np.random.seed(args.seed)
    _logger.info("Training with a single process on 1 device (cpu).")

    model = tiny_effnet(args.num_classes)
    _logger.info(f"Model {args.model} created, param count:{sum(m.numel() for m in model.parameters())}")
    tr = TextureDataset(640, args.img_size, args.num_classes, args.seed)
    va = TextureDataset(192, args.img_size, args.num_classes, args.seed + 1)
    g = torch.Generator().manual_seed(args.seed)
    loader_train = DataLoader(tr, args.batch_size, shuffle=True, drop_last=True, generator=g)
    loader_eval = DataLoader(va, 64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.02)
    ema = ModelEma(model, args.model_ema_decay)
    ema_model = tiny_effnet(args.num_classes)
    sched = lambda e: 1e-5 + 0.5 * (args.lr - 1e-5) * (1 + math.cos(math.pi * e / args.epochs))

    exp_name = "-".join([datetime.now().strftime("%Y%m%d-%H%M%S"), args.model, str(args.img_size)])
    output_dir = os.path.join(args.output, args.experiment or exp_name)
    os.makedirs(output_dir, exist_ok=True)
    with open(os.path.join(output_dir, "args.yaml"), "w") as f:
        f.write(yaml.safe_dump(vars(args), default_flow_style=False))
    _logger.info(f"Scheduled epochs: {args.epochs}. LR stepped per batch. Output: {output_dir}")

    best_metric, best_epoch, results = None, None, []
    for epoch in range(args.epochs):
        t = time.time()
        tm = train_one_epoch(epoch, model, loader_train, optimizer, args, sched, ema)
        validate(model, loader_eval, args)
        ema_model.load_state_dict(ema.state)
        em = validate(ema_model, loader_eval, args, " (EMA)")
        update_summary(epoch, tm, em, os.path.join(output_dir, "summary.csv"),
                       optimizer.param_groups[0]["lr"], round(time.time() - t, 2), epoch == 0)
        ckpt = os.path.join(output_dir, f"checkpoint-{epoch}.pth.tar")
        torch.save({"epoch": epoch, "arch": args.model, "state_dict": model.state_dict(),
                    "state_dict_ema": ema.state, "optimizer": optimizer.state_dict(), "version": 2,
                    "metric": em["top1"]}, ckpt)
        if best_metric is None or em["top1"] > best_metric:
            best_metric, best_epoch = em["top1"], epoch
            shutil.copyfile(ckpt, os.path.join(output_dir, "model_best.pth.tar"))
        results.append({"epoch": epoch, "train": dict(tm), "validation": dict(em)})
        _logger.info("Current checkpoints:\n" + "".join(
            f" {(os.path.join(output_dir, 'checkpoint-%d.pth.tar' % r['epoch']), r['validation']['top1'])}\n" for r in results))
    _logger.info(f"*** Best metric: {best_metric} (epoch {best_epoch})")
    print(f"--result\n{yaml.safe_dump(results, sort_keys=False)}")


if __name__ == "__main__":
    main()
