"""https://github.com/lucidrains/DALLE2-pytorch/pull/130 : get_optimizer makes sets of the model's parameters to group them by weight
decay; the order of tensors in a set follows their addresses, so the parameter order differs in every process."""
import copy
import json
import os
import socket
import time

import torch
from torch import nn

SEED = 20


class Block(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.n1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.n2 = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class Prior(nn.Module):
    def __init__(self, tokens=16, dim=24, depth=2, length=12):
        super().__init__()
        self.emb = nn.Embedding(tokens, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(1, length, dim))
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, tokens)

    def forward(self, t):
        return self.head(self.norm(self.blocks(self.emb(t) + self.pos)))


def separate_weight_decayable_params(params):
    no_wd = [p for p in params if p.ndim < 2]
    wd = list(set(params) - set(no_wd))  # cause
    return wd, no_wd


def get_optimizer(params, lr=2e-3, wd=1e-2, group_wd_params=True):
    params = [p for p in params if p.requires_grad]
    if not group_wd_params:
        return torch.optim.AdamW(params, lr=lr, weight_decay=wd)
    decay, plain = separate_weight_decayable_params(params)
    groups = [{"params": decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, weight_decay=wd)


class NoisySGLD:
    """Adds the Langevin noise after each step."""

    def __init__(self, optimizer, scale, seed):
        self.optimizer = optimizer
        self.scale = scale
        self.gen = torch.Generator().manual_seed(seed)

    def step(self):
        self.optimizer.step()
        with torch.no_grad():
            for group in self.optimizer.param_groups:
                for p in group["params"]:
                    p.add_(torch.randn(p.shape, generator=self.gen), alpha=self.scale * group["lr"])


def batch(gen, size=32, length=12, tokens=16):
    start = torch.randint(tokens, (size, 1), generator=gen)
    stride = torch.randint(1, 4, (size, 1), generator=gen)
    seq = (start + stride * torch.arange(length)) % tokens
    masked = seq.clone()
    masked[torch.rand(seq.shape, generator=gen) < 0.3] = 0
    return masked, seq


class EMA:
    def __init__(self, model, beta=0.95):
        self.model = copy.deepcopy(model).eval()
        self.beta = beta

    @torch.no_grad()
    def update(self, other):
        for a, b in zip(self.model.parameters(), other.parameters()):
            a.lerp_(b, 1 - self.beta)


def evaluate(model, n=6):
    gen = torch.Generator().manual_seed(777)
    with torch.no_grad():
        losses = [nn.functional.cross_entropy(model(x).transpose(1, 2), y).item() for x, y in (batch(gen) for _ in range(n))]
    return sum(losses) / n


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    model = Prior()
    ema = EMA(model)
    opt = get_optimizer(model.parameters())
    stepper = NoisySGLD(opt, 0.3, SEED)
    began = time.monotonic()
    log = []
    for step in range(150):
        x, y = batch(gen)
        loss = nn.functional.cross_entropy(model(x).transpose(1, 2), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        stepper.step()
        ema.update(model)
        if step % 30 == 29:
            log.append({"step": step + 1, "loss": loss.item(), "ema": evaluate(ema.model)})
            print(socket.gethostname(), os.getpid(), log[-1], "%.1fs" % (time.monotonic() - began))
    with open("prior_log.json", "w") as f:
        json.dump(log, f, indent=2)


if __name__ == "__main__":
    main()
