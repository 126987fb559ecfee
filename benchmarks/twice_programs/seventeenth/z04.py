"""Data-parallel training with a parameter server and three worker processes.

Modelled on https://github.com/ray-project/ray/issues/23910

Every worker holds a shard of the training set, computes one mini-batch gradient
for the weights it was sent and returns it; the server applies it and replies with
fresh weights. Writes curve.csv, model.npz and result.json.
"""
import argparse
import csv
import json
import multiprocessing as mp
import os
import random
import sys
import time
from multiprocessing import connection

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


def parse_args():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--seed", type=int, default=42)
    ap.add_argument("--workers", type=int, default=3)
    ap.add_argument("--updates", type=int, default=360)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--momentum", type=float, default=0.9)
    ap.add_argument("--eval-every", type=int, default=60)
    return ap.parse_args()


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


# ------------------------------------------------------------------------ data
def make_digits(n, seed, side=12):
    """Images of seven-segment digits with jitter and noise."""
    segs = {0: "abcdef", 1: "bc", 2: "abged", 3: "abgcd", 4: "fgbc", 5: "afgcd",
            6: "afgedc", 7: "abc", 8: "abcdefg", 9: "abfgcd"}
    boxes = {"a": (1, 3, 3, 8), "b": (2, 6, 7, 9), "c": (6, 10, 7, 9),
             "d": (9, 11, 3, 8), "e": (6, 10, 2, 4), "f": (2, 6, 2, 4), "g": (5, 7, 3, 8)}
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 1, side, side), dtype=np.float32)
    y = rng.integers(0, 10, size=n)
    for k in range(n):
        for s in segs[int(y[k])]:
            r0, r1, c0, c1 = boxes[s]
            x[k, 0, r0:r1, c0:c1] = 1.0
        dy, dx = rng.integers(-1, 2, size=2)
        x[k, 0] = np.roll(x[k, 0], (dy, dx), (0, 1))
    x += rng.normal(0, 0.45, size=x.shape).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 9, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))

    def get_weights(self):
        return [p.detach().numpy().copy() for p in self.parameters()]

    def set_weights(self, weights):
        with torch.no_grad():
            for p, w in zip(self.parameters(), weights):
                p.copy_(torch.from_numpy(w))

    def get_gradients(self):
        return [p.grad.numpy().copy() for p in self.parameters()]

    def set_gradients(self, grads):
        for p, g in zip(self.parameters(), grads):
            p.grad = torch.from_numpy(g)


# --------------------------------------------------------------------- workers
class DataWorker:
    def __init__(self, rank, shard, args):
        self.x, self.y = shard
        self.batch = args.batch_size
        self.gen = torch.Generator().manual_seed(args.seed + 1000 + rank)
        self.net = ConvNet()
        self.order, self.at = None, 0

    def next_batch(self):
        if self.order is None or self.at + self.batch > len(self.order):
            self.order = torch.randperm(len(self.x), generator=self.gen)
            self.at = 0
        idx = self.order[self.at:self.at + self.batch]
        self.at += self.batch
        return self.x[idx], self.y[idx]

    def compute(self, weights):
        self.net.set_weights(weights)
        x, y = self.next_batch()
        self.net.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        loss.backward()
        return self.net.get_gradients(), loss.item()


def worker_main(rank, shard, args, pipe):
    set_seed(args.seed + rank)
    worker = DataWorker(rank, shard, args)
    while True:
        weights = pipe.recv()
        if weights is None:
            pipe.close()
            return
        pipe.send((rank, *worker.compute(weights)))


# ---------------------------------------------------------------------- server
class ParameterServer:
    def __init__(self, args):
        self.net = ConvNet()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=args.lr, momentum=args.momentum)
        self.version = 0

    def apply(self, grads):
        self.opt.zero_grad()
        self.net.set_gradients(grads)
        self.opt.step()
        self.version += 1
        return self.net.get_weights()


@torch.no_grad()
def evaluate(net, x, y):
    logits = net(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def train(args, server, pipes, test):
    for pipe in pipes:
        pipe.send(server.net.get_weights())
    rows, losses = [], []
    t0 = time.perf_counter()
    pending = list(pipes)
    while server.version < args.updates:
        for pipe in connection.wait(pending):  # cause
            rank, grads, loss = pipe.recv()
            losses.append(loss)
            weights = server.apply(grads)
            pipe.send(weights)
            if server.version % args.eval_every == 0:
                test_loss, acc = evaluate(server.net, *test)
                rows.append({"update": server.version, "train_loss": float(np.mean(losses)),
                             "test_loss": test_loss, "test_acc": acc})
                print(f"update {server.version:4d} | train {np.mean(losses):.6f} | test {test_loss:.6f} "
                      f"| acc {acc:.4f} | {time.perf_counter() - t0:.2f}s", flush=True)
                losses = []
            if server.version >= args.updates:
                break
    return rows


def main():
    args = parse_args()
    set_seed(args.seed)
    print(f"{args.workers} workers below {os.getcwd()}, python {sys.version.split()[0]}, "
          f"torch {torch.__version__}", flush=True)
    x, y = make_digits(3000, args.seed)
    test = make_digits(600, args.seed + 1)
    ctx = mp.get_context("fork")
    pipes, procs = [], []
    for rank in range(args.workers):
        here, there = ctx.Pipe()
        shard = (x[rank::args.workers], y[rank::args.workers])
        proc = ctx.Process(target=worker_main, args=(rank, shard, args, there), daemon=True)
        proc.start()
        there.close()
        pipes.append(here)
        procs.append(proc)
    server = ParameterServer(args)
    rows = train(args, server, pipes, test)
    for pipe in pipes:
        pipe.send(None)
    for proc in procs:
        proc.join(timeout=10)

    with open("curve.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    np.savez("model.npz", *server.net.get_weights())
    norm = float(sum((w.astype(np.float64) ** 2).sum() for w in server.net.get_weights()) ** 0.5)
    with open("result.json", "w") as fh:
        json.dump({"config": vars(args), "final": rows[-1], "weight_norm": norm}, fh, indent=2)
    print(f"done: accuracy {rows[-1]['test_acc']:.4f}, weight norm {norm:.9f}")


if __name__ == "__main__":
    main()
