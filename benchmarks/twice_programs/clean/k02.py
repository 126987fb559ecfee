"""Image classifier training.

Modelled on huggingface/pytorch-image-models (timm) train.py: argparse + args.yaml,
_logger lines "Train: 0 [  0/50 (  0%)]  Loss: ...  Time: ...s, .../s  LR: ...  Data: ...",
AverageMeter, output/train/<date>-<model>/summary.csv, checkpoint-N.pth.tar, model EMA.
"""
import argparse
import copy
import csv
import logging
import os
import time
from collections import OrderedDict
from datetime import datetime

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml
from torch.utils.data import DataLoader, TensorDataset

_logger = logging.getLogger('train')
parser = argparse.ArgumentParser(description='PyTorch ImageNet Training')
parser.add_argument('--model', default='resnet10_tiny')
parser.add_argument('--epochs', type=int, default=4)
parser.add_argument('-b', '--batch-size', type=int, default=32)
parser.add_argument('--lr', type=float, default=0.05)
parser.add_argument('--smoothing', type=float, default=0.1)
parser.add_argument('--model-ema-decay', type=float, default=0.98)
parser.add_argument('--log-interval', type=int, default=10)
parser.add_argument('--seed', type=int, default=42)
parser.add_argument('--output', default='./output/train')
parser.add_argument('--experiment', default='')


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    _, pred = output.topk(max(topk), 1, True, True)
    correct = pred.t().eq(target.reshape(1, -1).expand_as(pred.t()))
    return [correct[:k].reshape(-1).float().sum(0) * 100. / target.size(0) for k in topk]


class Basic(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.b2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.down = nn.Conv2d(i, o, 1, s, bias=False) if s != 1 or i != o else nn.Identity()

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        return F.relu(self.b2(self.c2(y)) + self.down(x))


def make_data(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, n)
    proto = np.random.default_rng(0).normal(size=(10, 3, 4, 4)).repeat(4, 2).repeat(4, 3)
    x = proto[y] + rng.normal(scale=3.0, size=(n, 3, 16, 16))
    return TensorDataset(torch.from_numpy(x).float(), torch.from_numpy(y))


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, ema):
    batch_time_m, data_time_m, losses_m = AverageMeter(), AverageMeter(), AverageMeter()
    model.train()
    end = time.time()
    last_idx = len(loader) - 1
    for idx, (input, target) in enumerate(loader):
        data_time_m.update(time.time() - end)
        loss = loss_fn(model(input), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for e, p in zip(ema.state_dict().values(), model.state_dict().values()):
                e.copy_(e * args.model_ema_decay + p * (1 - args.model_ema_decay) if e.is_floating_point() else p)
        losses_m.update(loss.item(), input.size(0))
        batch_time_m.update(time.time() - end)
        if idx == last_idx or idx % args.log_interval == 0:
            lr = optimizer.param_groups[0]['lr']
            _logger.info(
                f'Train: {epoch} [{idx:>4d}/{len(loader)} ({100. * idx / last_idx:>3.0f}%)]  '
                f'Loss: {losses_m.val:#.3g} ({losses_m.avg:#.3g})  '
                f'Time: {batch_time_m.val:.3f}s, {input.size(0) / batch_time_m.val:>7.2f}/s  '
                f'({batch_time_m.avg:.3f}s, {input.size(0) / batch_time_m.avg:>7.2f}/s)  '
                f'LR: {lr:.3e}  Data: {data_time_m.val:.3f} ({data_time_m.avg:.3f})')
        end = time.time()
    return OrderedDict([('loss', losses_m.avg)])


@torch.no_grad()
def validate(model, loader, loss_fn, args, log_suffix=''):
    batch_time_m, losses_m, top1_m, top5_m = (AverageMeter() for _ in range(4))
    model.eval()
    end = time.time()
    for idx, (input, target) in enumerate(loader):
        output = model(input)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses_m.update(loss_fn(output, target).item(), input.size(0))
        top1_m.update(acc1.item(), input.size(0))
        top5_m.update(acc5.item(), input.size(0))
        batch_time_m.update(time.time() - end)
        end = time.time()
        if idx == len(loader) - 1 or idx % args.log_interval == 0:
            _logger.info(f'Test{log_suffix}: [{idx:>4d}/{len(loader) - 1}]  '
                         f'Time: {batch_time_m.val:.3f} ({batch_time_m.avg:.3f})  '
                         f'Loss: {losses_m.val:>7.3f} ({losses_m.avg:>6.3f})  '
                         f'Acc@1: {top1_m.val:>7.3f} ({top1_m.avg:>7.3f})  Acc@5: {top5_m.val:>7.3f} ({top5_m.avg:>7.3f})')
    return OrderedDict([('loss', losses_m.avg), ('top1', top1_m.avg), ('top5', top5_m.avg)])


def update_summary(epoch, train_metrics, eval_metrics, filename, lr, write_header):
    row = OrderedDict(epoch=epoch)
    row.update([('train_' + k, v) for k, v in train_metrics.items()])
    row.update([('eval_' + k, v) for k, v in eval_metrics.items()])
    row['lr'] = lr
    with open(filename, 'a') as cf:
        dw = csv.DictWriter(cf, fieldnames=row.keys())
        if write_header:
            dw.writeheader()
        dw.writerow(row)


def main():
    logging.basicConfig(level=logging.INFO, format='%(message)s')
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), Basic(16, 16, 1), Basic(16, 32, 2), Basic(32, 64, 2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    _logger.info(f'Model {args.model} created, param count:{sum(m.numel() for m in model.parameters())}')
    ema = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=2e-5)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    loader_train = DataLoader(make_data(1280, 1), args.batch_size, shuffle=True, drop_last=True)
    loader_eval = DataLoader(make_data(512, 2), args.batch_size)
    exp_name = '-'.join([datetime.now().strftime('%Y%m%d-%H%M%S'), args.model, '16'])
    output_dir = os.path.join(args.output, args.experiment or exp_name)
    os.makedirs(output_dir)
    with open(os.path.join(output_dir, 'args.yaml'), 'w') as f:
        f.write(yaml.safe_dump(args.__dict__, default_flow_style=False))
    _logger.info(f'Scheduled epochs: {args.epochs}. LR stepped per epoch.')
    best, best_epoch = None, None
    for epoch in range(args.epochs):
        lr = optimizer.param_groups[0]['lr']
        tm = train_one_epoch(epoch, model, loader_train, optimizer, nn.CrossEntropyLoss(label_smoothing=args.smoothing), args, ema)
        validate(model, loader_eval, nn.CrossEntropyLoss(), args)
        em = validate(ema, loader_eval, nn.CrossEntropyLoss(), args, log_suffix=' (EMA)')
        update_summary(epoch, tm, em, os.path.join(output_dir, 'summary.csv'), lr, write_header=best is None)
        torch.save({'epoch': epoch, 'arch': args.model, 'state_dict': model.state_dict(), 'state_dict_ema': ema.state_dict(),
                    'optimizer': optimizer.state_dict(), 'metric': em['top1']}, os.path.join(output_dir, f'checkpoint-{epoch}.pth.tar'))
        if best is None or em['top1'] > best:
            best, best_epoch = em['top1'], epoch
        _logger.info('Current checkpoints:\n' + f" ('{output_dir}/checkpoint-{epoch}.pth.tar', {em['top1']})\n")
        sched.step()
    _logger.info('*** Best metric: {0} (epoch {1})'.format(best, best_epoch))


if __name__ == '__main__':
    main()
