"""Two-rank DDP image classifier on gloo with AverageMeter/ProgressMeter output, in the style of pytorch/examples imagenet/main.py."""
import argparse
import logging
import os
import shutil
import socket
import time
from enum import Enum

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="PyTorch ImageNet Training (toy)")
parser.add_argument("--workers", "-j", default=1, type=int)
parser.add_argument("--epochs", default=2, type=int)
parser.add_argument("--batch-size", "-b", default=64, type=int, help="total over all ranks")
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--weight-decay", "--wd", default=1e-4, type=float)
parser.add_argument("--print-freq", "-p", default=5, type=int)
parser.add_argument("--world-size", default=2, type=int)
parser.add_argument("--seed", default=0, type=int)


class Summary(Enum):
    NONE = 0
    AVERAGE = 1


class AverageMeter:
    def __init__(self, name, fmt=":f", summary=Summary.AVERAGE):
        self.name, self.fmt, self.summary = name, fmt, summary
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def all_reduce(self):
        t = torch.tensor([self.sum, self.count], dtype=torch.float64)
        dist.all_reduce(t, dist.ReduceOp.SUM)
        self.sum, self.count = t.tolist()
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


class ProgressMeter:
    def __init__(self, num_batches, meters, prefix=""):
        self.fmt = "[{:" + str(len(str(num_batches))) + "d}/" + str(num_batches) + "]"
        self.meters, self.prefix = meters, prefix

    def display(self, batch):
        print("\t".join([self.prefix + self.fmt.format(batch)] + [str(m) for m in self.meters]), flush=True)

    def display_summary(self):
        parts = [f"{m.name} {m.avg:.3f}" for m in self.meters if m.summary is Summary.AVERAGE]
        print(" ".join([" *"] + parts), flush=True)


class Shapes(Dataset):
    """Coloured bars and blobs; sample i is a function of i alone."""

    def __init__(self, n, offset):
        self.n, self.offset = n, offset

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.offset + i)
        label = int(torch.randint(0, 6, (1,), generator=g))
        img = torch.randn(3, 16, 16, generator=g) * 0.9
        pos = int(torch.randint(2, 12, (1,), generator=g))
        ch = label % 3
        if label < 3:
            img[ch, pos:pos + 3, :] += 1.1
        else:
            img[ch, :, pos:pos + 3] += 1.1
        return img, label


def build_model():
    def block(i, o, s):
        return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
    return nn.Sequential(block(3, 12, 1), block(12, 24, 2), block(24, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(32, 6))


def accuracy(output, target, topk=(1, 2)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1))
        return [correct[:k].reshape(-1).float().sum().item() * 100.0 / target.size(0) for k in topk]


def setup_rank_logger(rank):
    os.makedirs("logs", exist_ok=True)
    log = logging.getLogger(f"rank{rank}")
    h = logging.FileHandler(f"logs/rank{rank}.log", mode="w")
    h.setFormatter(logging.Formatter("[%(asctime)s,%(msecs)03d] [%(process)d] [%(name)s] %(message)s", "%H:%M:%S"))
    log.addHandler(h)
    log.setLevel(logging.DEBUG)
    return log


def run_epoch(loader, model, criterion, optimizer, epoch, args, rank, train):
    batch_time, data_time = AverageMeter("Time", ":6.3f", Summary.NONE), AverageMeter("Data", ":6.3f", Summary.NONE)
    losses = AverageMeter("Loss", ":.4e", Summary.NONE)
    top1, top2 = AverageMeter("Acc@1", ":6.2f"), AverageMeter("Acc@2", ":6.2f")
    meters = [batch_time, data_time, losses, top1, top2] if train else [batch_time, losses, top1, top2]
    progress = ProgressMeter(len(loader), meters, prefix=f"Epoch: [{epoch}]" if train else "Test: ")
    model.train(train)
    end = time.time()
    with torch.set_grad_enabled(train):
        for i, (images, target) in enumerate(loader):
            data_time.update(time.time() - end)
            output = model(images)
            loss = criterion(output, target)
            a1, a2 = accuracy(output, target)
            losses.update(loss.item(), images.size(0))
            top1.update(a1, images.size(0))
            top2.update(a2, images.size(0))
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            batch_time.update(time.time() - end)
            end = time.time()
            if rank == 0 and i % args.print_freq == 0:
                progress.display(i + 1)
    for m in (losses, top1, top2):
        m.all_reduce()
    if rank == 0 and not train:
        progress.display_summary()
    return top1.avg, losses.avg, batch_time.sum


def main_worker(rank, args):
    log = setup_rank_logger(rank)
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    dist.init_process_group("gloo", rank=rank, world_size=args.world_size)
    log.info(f"init_process_group done: rank {rank}/{args.world_size} host {socket.gethostname()} port {args.port}")
    torch.manual_seed(args.seed)
    model = DDP(build_model())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.3)
    train_set, val_set = Shapes(768, 0), Shapes(256, 100_000)
    sampler = DistributedSampler(train_set, shuffle=True, seed=args.seed)
    per_rank = args.batch_size // args.world_size
    train_loader = DataLoader(train_set, per_rank, sampler=sampler, num_workers=args.workers,
                              persistent_workers=args.workers > 0)
    val_loader = DataLoader(val_set, per_rank, sampler=DistributedSampler(val_set, shuffle=False))
    best_acc1 = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        tr_acc, tr_loss, secs = run_epoch(train_loader, model, criterion, optimizer, epoch, args, rank, True)
        acc1, val_loss, _ = run_epoch(val_loader, model, criterion, optimizer, epoch, args, rank, False)
        scheduler.step()
        ips = len(train_set) / args.world_size / secs
        log.info(f"epoch {epoch} train loss {tr_loss:.6f} acc {tr_acc:.3f} val loss {val_loss:.6f} acc {acc1:.3f} "
                 f"({secs:.2f}s, {ips:.1f} img/s)")
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        if rank == 0:
            torch.save({"epoch": epoch + 1, "arch": "toynet", "state_dict": model.module.state_dict(),
                        "best_acc1": best_acc1, "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                        "wall_time": time.time() - args.t0}, "checkpoint.pth.tar")
            if is_best:
                shutil.copyfile("checkpoint.pth.tar", "model_best.pth.tar")
    w = torch.cat([p.detach().flatten() for p in model.parameters()])
    sums = [torch.zeros(1) for _ in range(args.world_size)]
    dist.all_gather(sums, w.sum().reshape(1))
    if rank == 0:
        print("parameter sums per rank:", [f"{s.item():.6f}" for s in sums])
    dist.barrier()
    dist.destroy_process_group()
    log.info("bye")


def main():
    args = parser.parse_args()
    args.t0 = time.time()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        args.port = s.getsockname()[1]
    print(f"=> creating model 'toynet', spawning {args.world_size} processes, dist_url tcp://127.0.0.1:{args.port}")
    mp.start_processes(main_worker, nprocs=args.world_size, args=(args,), start_method="fork")
    ck = torch.load("checkpoint.pth.tar", weights_only=True)
    print(f"=> done: epoch {ck['epoch']}, best acc@1 {ck['best_acc1']:.3f}, total {time.time() - args.t0:.1f}s")


if __name__ == "__main__":
    main()
