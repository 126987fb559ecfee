"""A soup of checkpoints: train a few members side by side, average the newest ones.

Modelled on https://github.com/huggingface/transformers/issues/26961
A trainer that rotates checkpoints removes one that it should have kept.
"""
import argparse
import json
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import nn

log = logging.getLogger("soup")


def make_task(n, d, k, seed):
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 1.1, (k, 3, d))
    y = rng.integers(0, k, n)
    x = centres[y, rng.integers(0, 3, n)] + rng.normal(0, 1.0, (n, d))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def build(d, k, width, seed):
    gen = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(d, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                        nn.Linear(width, k))
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() > 1:
                p.copy_(torch.randn(p.shape, generator=gen) * (2 / p.shape[1]) ** 0.5)
            else:
                p.zero_()
    return net


def finetune(base, x, y, member, folder, args):
    """One member of the soup: its own order of rows and its own rate."""
    gen = torch.Generator().manual_seed(args.seed * 1000 + member)
    net = build(x.shape[1], int(y.max()) + 1, args.width, args.seed)
    net.load_state_dict(base)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr * (1 + 0.25 * (member % 4)), momentum=0.9)
    t0, losses = time.time(), []
    for epoch in range(args.epochs):
        for b in torch.randperm(len(x), generator=gen).split(64):
            loss = nn.functional.cross_entropy(net(x[b]), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
        losses.append(loss.item())
        torch.save({"model": net.state_dict(), "epoch": epoch, "member": member},
                   folder / f"member{member:02d}-epoch{epoch:02d}.pt")
    return member, losses, time.time() - t0


def evaluate(net, x, y):
    with torch.no_grad():
        z = net(x)
        return (nn.functional.cross_entropy(z, y).item(),
                (z.argmax(1) == y).float().mean().item())


def newest(folder, count):
    files = sorted(folder.glob("*.pt"), key=os.path.getmtime)  # cause
    return files[-count:]


def average(files):
    total = None
    for f in files:
        state = torch.load(f, weights_only=True)["model"]
        if total is None:
            total = {k: v.clone() for k, v in state.items()}
        else:
            for k, v in state.items():
                total[k] += v
    return {k: v / len(files) for k, v in total.items()}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=2400)
    ap.add_argument("--dim", type=int, default=20)
    ap.add_argument("--classes", type=int, default=5)
    ap.add_argument("--width", type=int, default=48)
    ap.add_argument("--members", type=int, default=12)
    ap.add_argument("--parallel", type=int, default=12)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--keep", type=int, default=24)
    ap.add_argument("--lr", type=float, default=0.03)
    ap.add_argument("--seed", type=int, default=8)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)

    x, y = make_task(args.rows, args.dim, args.classes, args.seed)
    cut = int(0.75 * len(x))
    folder = Path("checkpoints")
    folder.mkdir()
    base = build(args.dim, args.classes, args.width, args.seed).state_dict()
    with ThreadPoolExecutor(args.parallel) as pool:
        jobs = [pool.submit(finetune, base, x[:cut], y[:cut], m, folder, args)
                for m in range(args.members)]
        members = [j.result() for j in jobs]
    for m, losses, seconds in members:
        log.info("member %d last loss %.6f in %.2fs", m, losses[-1], seconds)

    net = build(args.dim, args.classes, args.width, args.seed)
    chosen = newest(folder, args.keep)
    net.load_state_dict(average(chosen))
    loss, acc = evaluate(net, x[cut:], y[cut:])
    log.info("soup of %d: loss %.8f acc %.4f", len(chosen), loss, acc)
    torch.save(net.state_dict(), "soup.pt")
    Path("soup.json").write_text(json.dumps(
        {"members": [l for _, l, _ in members], "loss": loss, "acc": acc,
         "norm": float(sum(p.norm() ** 2 for p in net.parameters()))}, indent=1))


if __name__ == "__main__":
    main()
