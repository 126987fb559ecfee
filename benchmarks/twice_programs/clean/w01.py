"""
Character-level GPT on a small synthetic corpus (in the spirit of minimal GPT trainers).

Trains a tiny decoder-only transformer, evaluates every `eval_interval` steps, keeps
the best checkpoint, and samples some text at the end.
"""
import json
import math
import os
import pickle
import random
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------
# config
out_dir = "out-char"
eval_interval = 40
log_interval = 10
eval_iters = 6
always_save_checkpoint = False
gradient_accumulation_steps = 2
batch_size = 12
block_size = 48
max_iters = 160
learning_rate = 2e-3
min_lr = 2e-4
warmup_iters = 16
lr_decay_iters = 160
beta1, beta2 = 0.9, 0.99
weight_decay = 1e-1
grad_clip = 1.0
seed = 1337
config_keys = [k for k, v in globals().items()
               if not k.startswith("_") and isinstance(v, (int, float, bool, str))]
config = {k: globals()[k] for k in config_keys}
# -----------------------------------------------------------------------------


@dataclass
class GPTConfig:
    block_size: int = 48
    vocab_size: int = 32
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 48
    dropout: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd)
        self.n_head, self.n_embd, self.dropout = c.n_head, c.n_embd, c.dropout

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


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
        self.wte.weight = self.lm_head.weight
        for p in self.parameters():
            if p.dim() >= 2:
                nn.init.normal_(p, mean=0.0, std=0.02)
        print("number of parameters: %.2fM" % (self.num_params() / 1e6,))

    def num_params(self):
        return sum(p.numel() for p in self.parameters())

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1))
        x = self.wte(idx) + self.wpe(pos)
        for b in self.h:
            x = b(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    def estimate_mfu(self, fwdbwd_per_iter, dt):
        c = self.config
        L, H, Q, T = c.n_layer, c.n_head, c.n_embd // c.n_head, c.block_size
        flops_per_iter = (6 * self.num_params() + 12 * L * H * Q * T) * T * fwdbwd_per_iter
        return flops_per_iter / dt / 50e9  # assume 50 GFLOPS for one CPU core

    @torch.no_grad()
    def generate(self, idx, n, temperature=0.9, top_k=8):
        for _ in range(n):
            logits, _ = self(idx[:, -self.config.block_size:])
            logits = logits[:, -1, :] / temperature
            v, _ = torch.topk(logits, top_k)
            logits[logits < v[:, [-1]]] = -float("inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, -1), 1)), 1)
        return idx


def make_corpus(n_sent=2500):
    rng = random.Random(seed)
    subj = ["the cat", "a dog", "my friend", "the king", "one bird", "the old man"]
    verb = ["sees", "likes", "follows", "hears", "finds"]
    obj = ["a tree", "the river", "some bread", "a red stone", "the moon"]
    return "".join(f"{rng.choice(subj)} {rng.choice(verb)} {rng.choice(obj)}.\n" for _ in range(n_sent))


def prepare():
    data = make_corpus()
    chars = sorted(set(data))
    stoi = {ch: i for i, ch in enumerate(chars)}
    ids = np.array([stoi[c] for c in data], dtype=np.uint16)
    n = int(0.9 * len(ids))
    os.makedirs("data", exist_ok=True)
    ids[:n].tofile("data/train.bin")
    ids[n:].tofile("data/val.bin")
    with open("data/meta.pkl", "wb") as f:
        pickle.dump({"vocab_size": len(chars), "itos": dict(enumerate(chars)), "stoi": stoi}, f)
    print(f"length of dataset in characters: {len(data):,}")
    print(f"train has {n:,} tokens, val has {len(ids) - n:,} tokens")
    return len(chars), dict(enumerate(chars)), stoi


def get_batch(split):
    data = np.memmap(f"data/{split}.bin", dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i:i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * min(ratio, 1.0))) * (learning_rate - min_lr)


@torch.no_grad()
def estimate_loss(model):
    out = {}
    model.eval()
    for split in ("train", "val"):
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            losses[k] = model(*get_batch(split))[1].item()
        out[split] = losses.mean().item()
    model.train()
    return out


def main():
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    os.makedirs(out_dir, exist_ok=True)
    print(f"tokens per iteration will be: {gradient_accumulation_steps * batch_size * block_size:,}")
    vocab_size, itos, stoi = prepare()
    gptconf = GPTConfig(block_size=block_size, vocab_size=vocab_size)
    model = GPT(gptconf)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(beta1, beta2),
                                  weight_decay=weight_decay)
    ctx = nullcontext()
    wandb_run_name = "gpt-char-" + str(time.time())
    log = open(os.path.join(out_dir, "log.jsonl"), "w")
    log.write(json.dumps({"run": wandb_run_name, "config": config}) + "\n")

    iter_num, best_val_loss, running_mfu = 0, 1e9, -1.0
    t_start = t0 = time.time()
    X, Y = get_batch("train")
    while True:
        lr = get_lr(iter_num)
        for g in optimizer.param_groups:
            g["lr"] = lr
        if iter_num % eval_interval == 0:
            losses = estimate_loss(model)
            print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
            log.write(json.dumps({"_timestamp": time.time(), "_runtime": time.time() - t_start,
                                  "iter": iter_num, "train/loss": losses["train"],
                                  "val/loss": losses["val"], "lr": lr,
                                  "mfu": running_mfu * 100}) + "\n")
            if losses["val"] < best_val_loss or always_save_checkpoint:
                best_val_loss = losses["val"]
                if iter_num > 0:
                    print(f"saving checkpoint to {out_dir}")
                    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                                "model_args": asdict(gptconf), "iter_num": iter_num,
                                "best_val_loss": best_val_loss, "config": config,
                                "saved_at": datetime.now().isoformat(),
                                "train_seconds": time.time() - t_start},
                               os.path.join(out_dir, "ckpt.pt"))
        for _ in range(gradient_accumulation_steps):
            with ctx:
                _, loss = model(X, Y)
                loss = loss / gradient_accumulation_steps
            X, Y = get_batch("train")
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        t1 = time.time()
        dt, t0 = t1 - t0, t1
        if iter_num % log_interval == 0:
            lossf = loss.item() * gradient_accumulation_steps
            if iter_num >= 5:
                mfu = model.estimate_mfu(batch_size * gradient_accumulation_steps, dt)
                running_mfu = mfu if running_mfu == -1.0 else 0.9 * running_mfu + 0.1 * mfu
            print(f"iter {iter_num}: loss {lossf:.4f}, time {dt * 1000:.2f}ms, mfu {running_mfu * 100:.2f}%")
        iter_num += 1
        if iter_num > max_iters:
            break
    log.close()
    model.eval()
    start = torch.tensor([[stoi["t"]]])
    text = "".join(itos[int(i)] for i in model.generate(start, 200)[0])
    print("---------------")
    print(text)
    print("---------------")
    with open(os.path.join(out_dir, "sample.txt"), "w") as f:
        f.write(text)
    print(f"best val loss {best_val_loss:.6f}; total training time {time.time() - t_start:.1f}s")


if __name__ == "__main__":
    main()
