"""Character-level GPT training in the manner of nanoGPT's train.py.

Output follows https://github.com/karpathy/nanoGPT (train.py, sample.py): the lines
"step 0: train loss ..., val loss ..." and "iter 0: loss ..., time ...ms, mfu ...%",
plus a checkpoint and a samples file.
"""
import math
import os
import pickle
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------
out_dir = "out-toy-char"
eval_interval = 20
log_interval = 5
eval_iters = 4
gradient_accumulation_steps = 2
batch_size = 8
block_size = 32
learning_rate = 3e-3
max_iters = 60
warmup_iters = 10
lr_decay_iters = 60
min_lr = 3e-4
weight_decay = 1e-1
grad_clip = 1.0
wandb_log = False
wandb_run_name = "mini-gpt" + str(time.time())
# -----------------------------------------------------------------------------


@dataclass
class GPTConfig:
    block_size: int = 32
    vocab_size: int = 64
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32
    dropout: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd, bias=False)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd, bias=False)
        self.n_head = c.n_head
        self.dropout = nn.Dropout(c.dropout)
        self.register_buffer("mask", torch.tril(torch.ones(c.block_size, c.block_size)).bool())

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = [t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v)]
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(~self.mask[:T, :T], float("-inf"))
        att = self.dropout(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd)
        self.attn = CausalSelfAttention(c)
        self.mlp = nn.Sequential(nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(),
                                 nn.Linear(4 * c.n_embd, c.n_embd), nn.Dropout(c.dropout))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.config = c
        self.wte = nn.Embedding(c.vocab_size, c.n_embd)
        self.wpe = nn.Embedding(c.block_size, c.n_embd)
        self.h = nn.ModuleList([Block(c) for _ in range(c.n_layer)])
        self.ln_f = nn.LayerNorm(c.n_embd)
        self.lm_head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.apply(self._init)
        print("number of parameters: %.2fM" % (self.get_num_params() / 1e6,))

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, mean=0.0, std=0.02)

    def get_num_params(self):
        return sum(p.numel() for p in self.parameters()) - self.wpe.weight.numel()

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1))
        x = self.wte(idx) + self.wpe(pos)
        for b in self.h:
            x = b(x)
        logits = self.lm_head(self.ln_f(x))
        if targets is None:
            return logits[:, [-1], :], None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    def estimate_mfu(self, fwdbwd_per_iter, dt):
        c = self.config
        flops_per_token = 6 * self.get_num_params() + 12 * c.n_layer * c.n_embd * c.block_size
        flops_achieved = flops_per_token * c.block_size * fwdbwd_per_iter / dt
        return flops_achieved / 50e9  # one CPU core, peak

    @torch.no_grad()
    def generate(self, idx, n, generator):
        for _ in range(n):
            logits, _ = self(idx[:, -self.config.block_size:])
            probs = F.softmax(logits[:, -1, :] / 0.8, dim=-1)
            idx = torch.cat((idx, torch.multinomial(probs, 1, generator=generator)), dim=1)
        return idx


def prepare():
    verses = ["the quick brown fox jumps over the lazy dog;\n", "a rolling stone gathers no moss,\n",
              "still waters run deep and cold below.\n", "he who hesitates is lost, they say!\n"]
    text = "".join(verses[(i * 7 + i // 3) % 4] for i in range(600))
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    ids = np.array([stoi[c] for c in text], dtype=np.uint16)
    n = int(0.9 * len(ids))
    ids[:n].tofile("train.bin")
    ids[n:].tofile("val.bin")
    with open("meta.pkl", "wb") as f:
        pickle.dump({"vocab_size": len(chars), "itos": chars, "stoi": stoi}, f)
    print(f"length of dataset in characters: {len(text):,}")
    print("all the unique characters:", repr("".join(chars)))
    return chars


def get_batch(split):
    data = np.memmap(split + ".bin", dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i:i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


@torch.no_grad()
def estimate_loss(model):
    out = {}
    model.eval()
    for split in ["train", "val"]:
        out[split] = torch.stack([model(*get_batch(split))[1] for _ in range(eval_iters)]).mean().item()
    model.train()
    return out


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1337)
    os.makedirs(out_dir, exist_ok=True)
    print(f"tokens per iteration will be: {gradient_accumulation_steps * batch_size * block_size:,}")
    itos = prepare()
    print("Initializing a new model from scratch")
    model = GPT(GPTConfig(vocab_size=len(itos)))
    decay = [p for p in model.parameters() if p.dim() >= 2]
    nodecay = [p for p in model.parameters() if p.dim() < 2]
    print(f"num decayed parameter tensors: {len(decay)}, with {sum(p.numel() for p in decay):,} parameters")
    print(f"num non-decayed parameter tensors: {len(nodecay)}, with {sum(p.numel() for p in nodecay):,} parameters")
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": weight_decay},
                             {"params": nodecay, "weight_decay": 0.0}], lr=learning_rate, betas=(0.9, 0.95))
    print("using fused AdamW: False")
    ctx = nullcontext()
    best, running_mfu, t0 = 1e9, -1.0, time.time()
    X, Y = get_batch("train")
    for it in range(max_iters + 1):
        for g in opt.param_groups:
            g["lr"] = get_lr(it)
        if it % eval_interval == 0:
            losses = estimate_loss(model)
            print(f"step {it}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
            if losses["val"] < best:
                best = losses["val"]
                if it > 0:
                    print(f"saving checkpoint to {out_dir}")
                    torch.save({"model": model.state_dict(), "model_args": asdict(model.config), "iter_num": it,
                                "best_val_loss": best, "config": {"wandb_run_name": wandb_run_name}},
                               os.path.join(out_dir, "ckpt.pt"))
        for _ in range(gradient_accumulation_steps):
            with ctx:
                _, loss = model(X, Y)
                loss = loss / gradient_accumulation_steps
            X, Y = get_batch("train")
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        opt.step()
        opt.zero_grad(set_to_none=True)
        t1 = time.time()
        dt, t0 = t1 - t0, t1
        if it % log_interval == 0:
            lossf = loss.item() * gradient_accumulation_steps
            if it >= 5:
                mfu = model.estimate_mfu(batch_size * gradient_accumulation_steps, dt)
                running_mfu = mfu if running_mfu == -1.0 else 0.9 * running_mfu + 0.1 * mfu
            print(f"iter {it}: loss {lossf:.4f}, time {dt * 1000:.2f}ms, mfu {running_mfu * 100:.2f}%")
    model.eval()
    g = torch.Generator().manual_seed(42)
    with open(os.path.join(out_dir, "samples.txt"), "w") as f:
        for _ in range(2):
            y = model.generate(torch.zeros((1, 1), dtype=torch.long), 80, g)
            s = "".join(itos[i] for i in y[0].tolist())
            print(s)
            print("---------------")
            f.write(s + "\n---------------\n")


if __name__ == "__main__":
    main()
