"""A language model after modded-nanogpt and torchtitan: a log named by a uuid, the script's own text in it, tokens per second with commas, mfu."""

import glob
import os
import resource
import sys
import time
import uuid
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

with open(sys.argv[0]) as f:
    code = f.read()


@dataclass
class Hyperparameters:
    num_iterations: int = 20
    warmdown: int = 8
    val_every: int = 5
    batch: int = 8
    seq: int = 32
    save_checkpoint: bool = True


def zeropower(G, steps=3):
    a, b, c = 3.4445, -4.7750, 2.0315
    X = G / (G.norm() + 1e-7)
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(p)
                buf = state["momentum_buffer"]
                buf.lerp_(p.grad, 1 - group["momentum"])
                p.add_(zeropower(p.grad.lerp(buf, group["momentum"])), alpha=-group["lr"])


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.fc = nn.Linear(dim, 2 * dim, bias=False)
        self.out = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(F.rms_norm(x, (d,))).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(y)
        return x + self.out(F.relu(self.fc(F.rms_norm(x, (d,)))).square())


class GPT(nn.Module):
    def __init__(self, vocab=64, dim=32, layers=2):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, 4) for _ in range(layers))
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, x, y):
        h = self.wte(x)
        for b in self.blocks:
            h = b(h)
        return F.cross_entropy(self.head(F.rms_norm(h, (h.size(-1),))).flatten(0, 1), y.flatten())


def write_shards():
    os.makedirs("data", exist_ok=True)
    g = np.random.default_rng(0)
    for n in range(2):
        tokens = np.cumsum(g.integers(1, 4, 3000)) % 64
        tokens.astype(np.uint16).tofile(f"data/train_{n:06d}.bin")


def generator(pattern, B, T):
    files = sorted(glob.glob(pattern))
    while True:
        for name in files:
            tokens = torch.tensor(np.fromfile(name, dtype=np.uint16).astype(np.int64))
            for at in range(0, len(tokens) - B * T - 1, B * T):
                buf = tokens[at : at + B * T + 1]
                yield buf[:-1].view(B, T), buf[1:].view(B, T)


args = Hyperparameters()
write_shards()
run_id = str(uuid.uuid4())
logdir = f"logs/{run_id}/"
os.makedirs(logdir)
logfile = f"logs/{run_id}.txt"


def print0(s, console=True):
    with open(logfile, "a") as f:
        if console:
            print(s)
        print(s, file=f)


print0(code, console=False)
print0("=" * 100, console=False)
print0(f"Running Python {sys.version.split()[0]} PyTorch {torch.__version__} pid {os.getpid()} on {os.uname().nodename}, {time.strftime('%c')}", console=False)
print0(f"logfile: {logfile}")
torch.manual_seed(1337)
model = GPT()
matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
opts = [torch.optim.AdamW([model.wte.weight, model.head.weight], lr=0.01, betas=(0.8, 0.95)), Muon(matrices)]
flops = 6 * sum(p.numel() for p in model.parameters()) * args.batch * args.seq
train = generator("data/train_*.bin", args.batch, args.seq)
print0(f"Training with {args.num_iterations} steps, {sum(p.numel() for p in model.parameters()):,} parameters")
training_time_ms = 0
t0 = time.perf_counter()
last = t0
for step in range(args.num_iterations + 1):
    if step == args.num_iterations or step % args.val_every == 0:
        training_time_ms += 1000 * (time.perf_counter() - t0)
        model.eval()
        with torch.no_grad():
            val = generator("data/train_000001.bin", args.batch, args.seq)
            val_loss = sum(model(*next(val)) for _ in range(3)) / 3
        print0(f"step:{step}/{args.num_iterations} val_loss:{val_loss:.4f} train_time:{training_time_ms:.0f}ms step_avg:{training_time_ms / max(step, 1):.2f}ms")
        model.train()
        t0 = time.perf_counter()
    if step == args.num_iterations:
        if args.save_checkpoint:
            torch.save(dict(step=step, code=code, model=model.state_dict(), optimizers=[o.state_dict() for o in opts]), f"{logdir}state_step{step:06d}.pt")
        break
    loss = model(*next(train))
    loss.backward()
    for o in opts:
        for group in o.param_groups:
            group.setdefault("initial_lr", group["lr"])
            group["lr"] = group["initial_lr"] * min(1, (args.num_iterations - step) / args.warmdown)
        o.step()
    model.zero_grad(set_to_none=True)
    now = time.perf_counter()
    dt, last = now - last, now
    tps = args.batch * args.seq / dt
    approx = training_time_ms + 1000 * (time.perf_counter() - t0)
    print0(
        f"\x1b[31mstep: {step + 1:2}  \x1b[32mloss: {loss.item():7.4f}  \x1b[33mmemory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:5.2f}GiB"
        f"  \x1b[34mtps: {round(tps):,}  \x1b[36mtflops: {flops / dt / 1e12:,.2f}  \x1b[35mmfu: {100 * flops / dt / 312e12:.2f}%\x1b[0m train_time:{approx:.0f}ms"
    )
print0(f"peak memory allocated: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")
