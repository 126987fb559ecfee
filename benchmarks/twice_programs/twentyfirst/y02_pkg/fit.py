"""Fit the model on the training complexes and score the others."""
import argparse
import logging
import time

import numpy as np
import torch

from . import SEED
from .layers import AtomicConv, Scaler
from .predict import score

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")


class Momentum:
    """Plain SGD with momentum and step decay."""

    def __init__(self, params, lr, momentum=0.9, decay=0.93):
        self.params = list(params)
        self.lr, self.momentum, self.decay = lr, momentum, decay
        self.velocity = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, loss):
        grads = torch.autograd.grad(loss, self.params)
        for p, v, g in zip(self.params, self.velocity, grads):
            v.mul_(self.momentum).add_(g)
            p.sub_(self.lr * v)

    def next_epoch(self):
        self.lr *= self.decay


def train(data, epochs, batch, seed):
    """Fit a model; the caller's random state is left as it was."""
    train_idx = data["train"]
    x = [torch.from_numpy(data[k][train_idx]) for k in ("frag1", "frag2", "both")]
    scaler = Scaler(data["y"][train_idx])
    y = torch.from_numpy(scaler.forward(data["y"][train_idx])).float()
    gen = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AtomicConv(x[0].shape[-1])
        opt = Momentum(model.parameters(), lr=0.02)
        for epoch in range(epochs):
            model.train()
            total = 0.0
            for idx in torch.randperm(len(y), generator=gen).split(batch):
                loss = torch.nn.functional.mse_loss(model(*[t[idx] for t in x]), y[idx])
                opt.step(loss)
                total += loss.item() * len(idx)
            opt.next_epoch()
            logging.info("epoch %d loss %.5f", epoch, total / len(y))
    print(f"final training loss {total / len(y):.6f}")
    return model, scaler


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="complexes.npz")
    ap.add_argument("--model", default="model.pt")
    ap.add_argument("--out", default="predictions.csv")
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--batch", type=int, default=16)
    args = ap.parse_args()
    torch.set_num_threads(1)
    data = np.load(args.data)
    t0 = time.time()
    model, scaler = train(data, args.epochs, args.batch, SEED)
    logging.info("fitted in %.1f s", time.time() - t0)
    torch.save({"state": model.state_dict(), "mean": scaler.mean, "std": scaler.std}, args.model)
    score(model, scaler, data, args.out)


if __name__ == "__main__":
    main()
