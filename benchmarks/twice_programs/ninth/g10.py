"""Training of a multilayer perceptron on hand-written kernels.

Modelled on https://github.com/vllm-project/vllm/pull/42425 where identical inputs gave numerically different outputs across runs.
"""
import argparse
import json
import logging
import random
import time

import numpy as np

from g10_kernels.matmul import Tuner

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("mlp")


def spirals(n, classes, dims, seed):
    """Noisy spirals embedded in a higher-dimensional space by a random rotation."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    r = rng.uniform(0.15, 1.0, n)
    ang = 4.0 * r + 2 * np.pi * y / classes + rng.normal(0, 0.18, n)
    base = np.column_stack([r * np.cos(ang), r * np.sin(ang), rng.normal(0, 0.2, (n, dims - 2))])
    q, _ = np.linalg.qr(rng.normal(size=(dims, dims)))
    x = (base @ q).astype(np.float32)
    return (x - x.mean(0)) / x.std(0), y


class Adam:
    def __init__(self, params, lr, b1=0.9, b2=0.999, eps=1e-8):
        self.p, self.lr, self.b1, self.b2, self.eps, self.t = params, lr, b1, b2, eps, 0
        self.m = [np.zeros_like(p) for p in params]
        self.v = [np.zeros_like(p) for p in params]

    def step(self, grads):
        self.t += 1
        scale = self.lr * np.sqrt(1 - self.b2 ** self.t) / (1 - self.b1 ** self.t)
        for p, g, m, v in zip(self.p, grads, self.m, self.v):
            m += (1 - self.b1) * (g - m)
            v += (1 - self.b2) * (g * g - v)
            p -= (scale * m / (np.sqrt(v) + self.eps)).astype(np.float32)


class MLP:
    def __init__(self, sizes, rng, matmul):
        self.mm = matmul
        self.w = [(rng.normal(size=(a, b)) * np.sqrt(2 / a)).astype(np.float32) for a, b in zip(sizes, sizes[1:])]
        self.b = [np.zeros(b, np.float32) for b in sizes[1:]]

    @property
    def params(self):
        return self.w + self.b

    def forward(self, x):
        acts = [x]
        for i, (w, b) in enumerate(zip(self.w, self.b)):
            h = self.mm(acts[-1], w) + b
            acts.append(np.maximum(h, 0) if i < len(self.w) - 1 else h)
        return acts

    def loss_grad(self, x, y):
        acts = self.forward(x)
        z = acts[-1] - acts[-1].max(1, keepdims=True)
        logp = z - np.log(np.exp(z).sum(1, keepdims=True))
        loss = -float(logp[np.arange(len(y)), y].mean())
        d = np.exp(logp)
        d[np.arange(len(y)), y] -= 1
        d /= len(y)
        gw, gb = [None] * len(self.w), [None] * len(self.w)
        for i in range(len(self.w) - 1, -1, -1):
            gw[i] = self.mm(np.ascontiguousarray(acts[i].T), d)
            gb[i] = d.sum(0)
            if i:
                d = self.mm(d, np.ascontiguousarray(self.w[i].T)) * (acts[i] > 0)
        return loss, gw + gb


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--rows", type=int, default=6144)
    p.add_argument("--classes", type=int, default=5)
    p.add_argument("--dims", type=int, default=256)
    p.add_argument("--hidden", type=int, default=448)
    p.add_argument("--epochs", type=int, default=16)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--ckpt", default="mlp.npz")
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)
    x, y = spirals(args.rows + 1024, args.classes, args.dims, args.seed)
    xt, yt, x, y = x[args.rows:], y[args.rows:], x[:args.rows], y[:args.rows]
    tuner = Tuner()
    net = MLP([args.dims, args.hidden, args.hidden, args.classes], rng, tuner)
    opt = Adam(net.params, args.lr)
    curve = []
    for ep in range(args.epochs):
        t0, tot = time.time(), 0.0
        for idx in rng.permutation(args.rows).reshape(-1, args.batch):
            loss, grads = net.loss_grad(x[idx], y[idx])
            opt.step(grads)
            tot += loss * len(idx)
        curve.append(tot / args.rows)
        log.info("epoch %d loss %.6f %.0f rows/s", ep, curve[-1], args.rows / (time.time() - t0))
    pred = net.forward(xt)[-1]
    acc = float((pred.argmax(1) == yt).mean())
    np.savez(args.ckpt, **{f"p{i}": q for i, q in enumerate(net.params)})
    with open("metrics.json", "w") as f:
        json.dump({"curve": curve, "test_acc": acc, "logit_norm": float(np.linalg.norm(pred)), "tuning_sec": tuner.spent}, f)
    print(f"loss {curve[-1]:.9f} acc {acc:.5f} logit_norm {np.linalg.norm(pred):.6f}")


if __name__ == "__main__":
    main()
