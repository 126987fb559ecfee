"""DistributedDataParallel on two gloo processes.

Modelled on pytorch/examples distributed/ddp-tutorial-series/multigpu.py and imagenet/main.py
(AverageMeter/ProgressMeter, DistributedSampler.set_epoch, all_reduce of metrics): mp.spawn with a free
port, a log file per rank, rank 0 printing "Epoch: [0][ 10/40] Time ... Data ... Loss ..." and the snapshot.
"""
import json
import logging
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WORLD, EPOCHS, BATCH, SEED = 2, 4, 32, 20


def find_free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class AverageMeter:
    def __init__(self, name, fmt=':f'):
        self.name, self.fmt, self.val, self.sum, self.count = name, fmt, 0.0, 0.0, 0

    def update(self, val, n=1):
        self.val, self.sum, self.count = val, self.sum + val * n, self.count + n

    @property
    def avg(self):
        return self.sum / max(1, self.count)

    def all_reduce(self):
        t = torch.tensor([self.sum, self.count], dtype=torch.float64)
        dist.all_reduce(t, dist.ReduceOp.SUM)
        self.sum, self.count = t.tolist()

    def __str__(self):
        return ('{name} {val' + self.fmt + '} ({avg' + self.fmt + '})').format(name=self.name, val=self.val, avg=self.avg)


class ProgressMeter:
    def __init__(self, num_batches, meters, prefix=''):
        n = len(str(num_batches))
        self.fmt, self.meters, self.prefix = '[{:' + str(n) + 'd}/' + str(num_batches) + ']', meters, prefix

    def display(self, batch, logger):
        logger.info('  '.join([self.prefix + self.fmt.format(batch)] + [str(m) for m in self.meters]))


def get_logger(rank):
    logger = logging.getLogger(f'rank{rank}')
    logger.setLevel(logging.INFO)
    fmt = logging.Formatter(f'%(asctime)s [rank {rank} pid %(process)d] %(message)s')
    handlers = [logging.FileHandler(f'logs/log.rank{rank}.txt')] + ([logging.StreamHandler(sys.stdout)] if rank == 0 else [])
    for h in handlers:
        h.setFormatter(fmt)
        logger.addHandler(h)
    return logger


def load_train_objs():
    g = torch.Generator().manual_seed(SEED)
    w = torch.randn(20, 5, generator=g)
    make = lambda n: (lambda x: TensorDataset(x, (x @ w + 1.5 * torch.randn(n, 5, generator=g)).argmax(1)))(torch.randn(n, 20, generator=g))
    train, val = make(2048), make(600)
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 5))
    return train, val, model


class Trainer:
    def __init__(self, rank, logger):
        self.rank, self.logger = rank, logger
        train, val, model = load_train_objs()
        torch.manual_seed(SEED + rank)
        self.sampler = DistributedSampler(train, shuffle=True, seed=SEED)
        self.train_loader = DataLoader(train, BATCH, sampler=self.sampler)
        self.val_loader = DataLoader(val, 100, sampler=DistributedSampler(val, shuffle=False))
        self.model, self.crit = DDP(model), nn.CrossEntropyLoss()
        self.opt = torch.optim.SGD(self.model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=2, gamma=0.3)

    def train_epoch(self, epoch):
        bt, dt, losses = AverageMeter('Time', ':6.3f'), AverageMeter('Data', ':6.3f'), AverageMeter('Loss', ':.4e')
        progress = ProgressMeter(len(self.train_loader), [bt, dt, losses], prefix=f'Epoch: [{epoch}]')
        self.sampler.set_epoch(epoch)
        self.model.train()
        end = time.time()
        for i, (x, y) in enumerate(self.train_loader):
            dt.update(time.time() - end)
            loss = self.crit(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            losses.update(loss.item(), len(x))
            bt.update(time.time() - end)
            end = time.time()
            if i % 10 == 0:
                progress.display(i + 1, self.logger)
        self.sched.step()
        return losses, bt

    @torch.no_grad()
    def validate(self):
        bt, losses, top1 = AverageMeter('Time', ':6.3f'), AverageMeter('Loss', ':.4e'), AverageMeter('Acc@1', ':6.2f')
        self.model.eval()
        end = time.time()
        for x, y in self.val_loader:
            out = self.model.module(x)
            losses.update(self.crit(out, y).item(), len(x))
            top1.update((out.argmax(1) == y).float().mean().item() * 100, len(x))
            bt.update(time.time() - end)
            end = time.time()
        losses.all_reduce()
        top1.all_reduce()
        self.logger.info(f' *   Acc@1 {top1.avg:.3f} Loss {losses.avg:.5f} ({bt.avg * 1000:.1f} ms/batch)')
        return top1.avg, losses.avg


def main_worker(rank, port):
    os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'] = '127.0.0.1', str(port)
    torch.set_num_threads(1)
    dist.init_process_group('gloo', rank=rank, world_size=WORLD)
    logger = get_logger(rank)
    logger.info(f'Use {socket.gethostname()}, init tcp://127.0.0.1:{port}, world size {WORLD}, ppid {os.getppid()}')
    trainer, history, start = Trainer(rank, logger), [], time.time()
    for epoch in range(EPOCHS):
        t0 = time.time()
        losses, bt = trainer.train_epoch(epoch)
        own = losses.avg
        losses.all_reduce()
        acc, vloss = trainer.validate()
        logger.info(f'[rank {rank}] Epoch {epoch} | own loss {own:.6f} | mean loss {losses.avg:.6f} | Steps: {len(trainer.train_loader)} | {time.time() - t0:.2f}s')
        history.append({'epoch': epoch, 'train_loss': losses.avg, 'val_loss': vloss, 'val_acc': acc, 'epoch_time': time.time() - t0,
                        'images_per_sec': len(trainer.train_loader) * BATCH * WORLD / (bt.sum + 1e-9)})
        if rank == 0:
            torch.save({'MODEL_STATE': trainer.model.module.state_dict(), 'EPOCHS_RUN': epoch, 'OPTIMIZER': trainer.opt.state_dict()}, 'snapshot.pt')
            logger.info(f'Epoch {epoch} | Training snapshot saved at snapshot.pt')
        dist.barrier()
    if rank == 0:
        with open('history.json', 'w') as f:
            json.dump({'world_size': WORLD, 'backend': dist.get_backend(), 'history': history, 'total_time': time.time() - start}, f, indent=2)
    dist.destroy_process_group()


if __name__ == '__main__':
    os.makedirs('logs', exist_ok=True)
    t0 = time.time()
    mp.spawn(main_worker, args=(find_free_port(),), nprocs=WORLD)
    print(f'All {WORLD} workers done in {time.time() - t0:.1f}s')
