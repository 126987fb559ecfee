"""https://github.com/pytorch/helion/pull/2626 - an autotuner keeps the fastest of the timed configurations, but timing
noise exceeds the gap between the best few, so the winner (and with it the order of float sums) is a lucky sample."""
import functools
import json
import time
from pathlib import Path

import torch
from torch import nn

REGISTRY = {}


def candidate(op, **config):
    def register(fn):
        REGISTRY.setdefault(op, []).append((config, functools.partial(fn, **config)))
        return fn

    return register


@candidate("mix", block=56)
@candidate("mix", block=60)
@candidate("mix", block=64)
@candidate("mix", block=68)
@candidate("mix", block=72)
@candidate("mix", block=76)
def blocked_mix(x, w, block):
    out = torch.zeros(x.shape[0], w.shape[1])
    for k in range(0, x.shape[1], block):
        out = out + x[:, k:k + block] @ w[k:k + block]
    return out


@candidate("norm", mode="two_pass")
@candidate("norm", mode="one_pass")
def channel_norm(x, mode):
    if mode == "two_pass":
        c = x - x.mean(1, keepdim=True)
        return c / (c.pow(2).mean(1, keepdim=True) + 1e-5).sqrt()
    m, m2 = x.mean(1, keepdim=True), x.pow(2).mean(1, keepdim=True)
    return (x - m) / (m2 - m * m + 1e-5).clamp(min=1e-6).sqrt()


class Autotuner:
    def __init__(self, repeats=3):
        self.repeats = repeats
        self.chosen = {}

    def time(self, fn, args):
        t = []
        for _ in range(self.repeats):
            t0 = time.perf_counter()
            fn(*args)
            t.append(time.perf_counter() - t0)
        return min(t)

    def get(self, op, *args):
        key = (op, *(tuple(a.shape) for a in args))
        if key not in self.chosen:
            with torch.no_grad():
                timed = [(self.time(fn, args), i) for i, (_, fn) in enumerate(REGISTRY[op])]
            self.chosen[key] = min(timed)[1]  # cause
            print(f"tuned {op}{key[1]}: {REGISTRY[op][self.chosen[key]][0]}")
        return REGISTRY[op][self.chosen[key]][1]


tuner = Autotuner()


class Layer(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.w = nn.Parameter(torch.randn(fan_in, fan_out) / fan_in ** 0.5)
        self.b = nn.Parameter(torch.zeros(fan_out))

    def forward(self, x):
        h = tuner.get("mix", x, self.w)(x, self.w) + self.b
        return torch.relu(tuner.get("norm", h)(h))


def waves(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, 160)
    y = torch.randint(0, 4, (n,), generator=g)
    f = (y + 2).float().unsqueeze(1)
    phase = 6.3 * torch.rand(n, 1, generator=g)
    x = torch.sin(6.28 * f * t + phase) + 0.3 * torch.sin(12.56 * f * t) + 0.9 * torch.randn(n, 160, generator=g)
    return x, y


def main(seed=3, epochs=15):
    torch.manual_seed(seed)
    x, y = waves(2048, 1)
    vx, vy = waves(512, 2)
    model = nn.Sequential(Layer(160, 128), Layer(128, 128), Layer(128, 64), nn.Linear(64, 4))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    log = []
    for epoch in range(epochs):
        t0 = time.time()
        total = 0.0
        for idx in torch.randperm(len(y)).split(64):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        with torch.no_grad():
            out = model(vx)
        log.append({"loss": total / 32, "val": nn.functional.cross_entropy(out, vy).item(),
                    "acc": (out.argmax(1) == vy).float().mean().item()})
        print(f"epoch {epoch:2d} " + " ".join(f"{k} {v:.5f}" for k, v in log[-1].items()) + f" ({time.time() - t0:.2f}s)")
    Path("waves.json").write_text(json.dumps(log, indent=1))


if __name__ == "__main__":
    main()
