"""Train a small ResNet on synthetic image data (adapted from the classic ImageNet example)."""
import argparse
import os
import random
import shutil
import time
from enum import Enum

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description="PyTorch image classification")
parser.add_argument("--epochs", default=3, type=int, metavar="N")
parser.add_argument("-b", "--batch-size", default=32, type=int)
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", default=1e-4, type=float)
parser.add_argument("-p", "--print-freq", default=5, type=int)
parser.add_argument("--seed", default=1234, type=int)
parser.add_argument("--num-classes", default=8, type=int)
parser.add_argument("--output-dir", default="checkpoints", type=str)


class Summary(Enum):
    NONE = 0
    AVERAGE = 1


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name = name
        self.fmt = fmt
        self.summary_type = summary_type
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        fmtstr = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return fmtstr.format(**self.__dict__)

    def summary(self):
        if self.summary_type is Summary.NONE:
            return ""
        return "{name} {avg:.3f}".format(**self.__dict__)


class ProgressMeter:
    def __init__(self, num_batches, meters, prefix=""):
        num_digits = len(str(num_batches))
        fmt = "{:" + str(num_digits) + "d}"
        self.batch_fmtstr = "[" + fmt + "/" + fmt.format(num_batches) + "]"
        self.meters = meters
        self.prefix = prefix

    def display(self, batch):
        entries = [self.prefix + self.batch_fmtstr.format(batch)]
        entries += [str(m) for m in self.meters]
        print("\t".join(entries), flush=True)

    def display_summary(self):
        print(" ".join([" *"] + [m.summary() for m in self.meters if m.summary()]), flush=True)


class ShapesDataset(Dataset):
    """Noisy oriented gratings; the class is the orientation."""

    def __init__(self, n, num_classes, seed, size=24):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, num_classes, n)
        yy, xx = np.mgrid[0:size, 0:size] / size
        theta = self.labels * np.pi / num_classes
        phase = rng.uniform(0, 2 * np.pi, n)
        wave = np.sin(2 * np.pi * 4 * (np.cos(theta)[:, None, None] * xx + np.sin(theta)[:, None, None] * yy)
                      + phase[:, None, None])
        img = np.stack([wave, 0.5 * wave, -wave], 1) + rng.normal(0, 1.5, (n, 3, size, size))
        self.images = img.astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]), int(self.labels[i])


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.down = nn.Conv2d(cin, cout, 1, stride, bias=False) if (stride != 1 or cin != cout) else nn.Identity()

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.down(x))


class ResNetTiny(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 1, 1)
        self.layers = nn.Sequential(Block(16, 16, 2), Block(16, 32, 2))
        self.fc = nn.Linear(32, num_classes)

    def forward(self, x):
        return self.fc(self.layers(F.relu(self.stem(x))).mean((2, 3)))


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1))
        return [correct[:k].reshape(-1).float().sum() * (100.0 / target.size(0)) for k in topk]


def run_epoch(loader, model, criterion, optimizer, epoch, args):
    training = optimizer is not None
    batch_time = AverageMeter("Time", ":6.3f", Summary.NONE)
    data_time = AverageMeter("Data", ":6.3f", Summary.NONE)
    losses = AverageMeter("Loss", ":.4e", Summary.NONE)
    top1 = AverageMeter("Acc@1", ":6.2f")
    top3 = AverageMeter("Acc@3", ":6.2f")
    meters = [batch_time, data_time, losses, top1, top3] if training else [batch_time, losses, top1, top3]
    progress = ProgressMeter(len(loader), meters, prefix=f"Epoch: [{epoch}]" if training else "Test: ")
    model.train(training)
    end = time.time()
    for i, (images, target) in enumerate(loader):
        data_time.update(time.time() - end)
        with torch.set_grad_enabled(training):
            output = model(images)
            loss = criterion(output, target)
        acc1, acc3 = accuracy(output, target, topk=(1, 3))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1.item(), images.size(0))
        top3.update(acc3.item(), images.size(0))
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0:
            progress.display(i + 1)
    if not training:
        progress.display_summary()
    return losses.avg, top1.avg


def save_checkpoint(state, is_best, out):
    path = os.path.join(out, "checkpoint.pth.tar")
    torch.save(state, path)
    if is_best:
        shutil.copyfile(path, os.path.join(out, "model_best.pth.tar"))


def main():
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    os.makedirs(args.output_dir, exist_ok=True)

    model = ResNetTiny(args.num_classes)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.wd)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.1)
    train_loader = DataLoader(ShapesDataset(640, args.num_classes, args.seed), args.batch_size, shuffle=True)
    val_loader = DataLoader(ShapesDataset(256, args.num_classes, args.seed + 1), 64)
    best_acc1, history = 0.0, []
    for epoch in range(args.epochs):
        tr_loss, tr_acc = run_epoch(train_loader, model, criterion, optimizer, epoch, args)
        va_loss, va_acc = run_epoch(val_loader, model, criterion, None, epoch, args)
        scheduler.step()
        is_best = va_acc > best_acc1
        best_acc1 = max(va_acc, best_acc1)
        history.append((epoch, tr_loss, tr_acc, va_loss, va_acc))
        save_checkpoint({"epoch": epoch + 1, "state_dict": model.state_dict(), "best_acc1": best_acc1,
                         "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()},
                        is_best, args.output_dir)
    with open(os.path.join(args.output_dir, "log.txt"), "w") as f:
        f.write("epoch\ttrain_loss\ttrain_acc1\tval_loss\tval_acc1\n")
        for row in history:
            f.write("{}\t{:.8f}\t{:.4f}\t{:.8f}\t{:.4f}\n".format(*row))
    print(f"=> best acc@1: {best_acc1:.3f}")


if __name__ == "__main__":
    main()
