"""Character-level GPT trainer with console and JSONL logs, in the style of karpathy/nanoGPT."""
import argparse
import json
import math
import os
import pickle
import random
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    block_size: int = 48
    vocab_size: int = 64
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 48
    dropout: float = 0.1
    bias: bool = False


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.ln_1 = nn.LayerNorm(cfg.n_embd, bias=cfg.bias)
        self.c_attn = nn.Linear(cfg.n_embd, 3 * cfg.n_embd, bias=cfg.bias)
        self.c_proj = nn.Linear(cfg.n_embd, cfg.n_embd, bias=cfg.bias)
        self.ln_2 = nn.LayerNorm(cfg.n_embd, bias=cfg.bias)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.n_embd, 4 * cfg.n_embd, bias=cfg.bias),
            nn.GELU(),
            nn.Linear(4 * cfg.n_embd, cfg.n_embd, bias=cfg.bias),
            nn.Dropout(cfg.dropout),
        )

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.wte = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.wpe = nn.Embedding(cfg.block_size, cfg.n_embd)
        self.drop = nn.Dropout(cfg.dropout)
        self.h = nn.ModuleList(Block(cfg) for _ in range(cfg.n_layer))
        self.ln_f = nn.LayerNorm(cfg.n_embd, bias=cfg.bias)
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)
        print("number of parameters: %.2fM" % (self.num_params() / 1e6,))

    @staticmethod
    def _init_weights(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, mean=0.0, std=0.02)

    def num_params(self):
        return sum(p.numel() for p in self.parameters()) - self.wpe.weight.numel()

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.drop(self.wte(idx) + self.wpe(pos))
        for blk in self.h:
            x = blk(x)
        x = self.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    def estimate_mfu(self, fwdbwd_per_iter, dt):
        c = self.cfg
        flops_tok = 6 * self.num_params() + 12 * c.n_layer * c.n_embd * c.block_size
        achieved = flops_tok * c.block_size * fwdbwd_per_iter / dt
        return achieved / 1e12

    @torch.no_grad()
    def generate(self, idx, n, temperature=0.8, top_k=10):
        for _ in range(n):
            logits, _ = self(idx[:, -self.cfg.block_size:])
            logits = logits[:, -1, :] / temperature
            v, _ = torch.topk(logits, top_k)
            logits[logits < v[:, [-1]]] = -float("inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, -1), 1)), dim=1)
        return idx


def prepare(data_dir, n_lines=3000):
    """Write train.bin / val.bin / meta.pkl from a little generated corpus."""
    rng = random.Random(1337)
    who = ["KING", "NURSE", "FOOL", "DUKE", "WITCH"]
    subj = ["the crown", "my lord", "thy sword", "a winter's tale", "yon moon", "the sea"]
    verb = ["doth weep for", "shall follow", "hath betrayed", "sleeps beside", "remembers"]
    lines = [f"{rng.choice(who)}:\n{rng.choice(subj).capitalize()} {rng.choice(verb)} {rng.choice(subj)}.\n"
             for _ in range(n_lines)]
    data = "\n".join(lines)
    chars = sorted(set(data))
    stoi = {c: i for i, c in enumerate(chars)}
    ids = np.array([stoi[c] for c in data], dtype=np.uint16)
    n = int(0.9 * len(ids))
    os.makedirs(data_dir, exist_ok=True)
    ids[:n].tofile(os.path.join(data_dir, "train.bin"))
    ids[n:].tofile(os.path.join(data_dir, "val.bin"))
    with open(os.path.join(data_dir, "meta.pkl"), "wb") as f:
        pickle.dump({"vocab_size": len(chars), "itos": dict(enumerate(chars)), "stoi": stoi}, f)
    print(f"length of dataset in characters: {len(data):,}\nvocab size: {len(chars):,}")
    print(f"train has {n:,} tokens\nval has {len(ids) - n:,} tokens")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out_dir", default="out-shakespeare-char")
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--max_iters", type=int, default=120)
    p.add_argument("--eval_interval", type=int, default=40)
    p.add_argument("--eval_iters", type=int, default=10)
    p.add_argument("--log_interval", type=int, default=10)
    p.add_argument("--learning_rate", type=float, default=3e-3)
    p.add_argument("--warmup_iters", type=int, default=10)
    args = p.parse_args()

    torch.manual_seed(1337)
    np.random.seed(1337)
    ctx = nullcontext()
    data_dir = os.path.join("data", "shakespeare_char")
    prepare(data_dir)
    os.makedirs(args.out_dir, exist_ok=True)
    with open(os.path.join(data_dir, "meta.pkl"), "rb") as f:
        meta = pickle.load(f)
    print(f"tokens per iteration will be: {args.batch_size * GPTConfig.block_size:,}")
    print(f"found vocab_size = {meta['vocab_size']} (inside {data_dir}/meta.pkl)")

    def get_batch(split):
        data = np.memmap(os.path.join(data_dir, f"{split}.bin"), dtype=np.uint16, mode="r")
        ix = torch.randint(len(data) - GPTConfig.block_size, (args.batch_size,))
        x = torch.stack([torch.from_numpy(data[i:i + GPTConfig.block_size].astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + GPTConfig.block_size].astype(np.int64)) for i in ix])
        return x, y

    print("Initializing a new model from scratch")
    cfg = GPTConfig(vocab_size=meta["vocab_size"])
    model = GPT(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, betas=(0.9, 0.99), weight_decay=0.1)

    @torch.no_grad()
    def estimate_loss():
        model.eval()
        out = {}
        for split in ("train", "val"):
            out[split] = np.mean([model(*get_batch(split))[1].item() for _ in range(args.eval_iters)])
        model.train()
        return out

    def get_lr(it):
        if it < args.warmup_iters:
            return args.learning_rate * (it + 1) / (args.warmup_iters + 1)
        ratio = (it - args.warmup_iters) / (args.max_iters - args.warmup_iters)
        return 0.1 * args.learning_rate + 0.45 * args.learning_rate * (1 + math.cos(math.pi * ratio))

    log = open(os.path.join(args.out_dir, "log.jsonl"), "w")
    best_val, running_mfu = 1e9, -1.0
    start = t0 = time.time()
    X, Y = get_batch("train")
    for it in range(args.max_iters + 1):
        lr = get_lr(it)
        for g in opt.param_groups:
            g["lr"] = lr
        if it % args.eval_interval == 0:
            losses = estimate_loss()
            print(f"step {it}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
            log.write(json.dumps({"iter": it, "train/loss": losses["train"], "val/loss": losses["val"], "lr": lr,
                                  "mfu": running_mfu * 100, "elapsed": time.time() - start}) + "\n")
            if losses["val"] < best_val:
                best_val = losses["val"]
                if it > 0:
                    print(f"saving checkpoint to {args.out_dir}")
                    torch.save({"model": model.state_dict(), "optimizer": opt.state_dict(),
                                "model_args": asdict(cfg), "iter_num": it, "best_val_loss": float(best_val),
                                "config": vars(args), "saved_at": time.time()},
                               os.path.join(args.out_dir, "ckpt.pt"))
        with ctx:
            _, loss = model(X, Y)
        X, Y = get_batch("train")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        t1 = time.time()
        dt, t0 = t1 - t0, t1
        if it % args.log_interval == 0:
            if it >= 5:
                mfu = model.estimate_mfu(args.batch_size, dt)
                running_mfu = mfu if running_mfu == -1.0 else 0.9 * running_mfu + 0.1 * mfu
            print(f"iter {it}: loss {loss.item():.4f}, time {dt * 1000:.2f}ms, mfu {running_mfu * 100:.2f}%")
    log.close()

    model.eval()
    ids = model.generate(torch.zeros((1, 1), dtype=torch.long), 160)[0].tolist()
    text = "".join(meta["itos"][i] for i in ids)
    print(text)
    print("---------------")
    with open(os.path.join(args.out_dir, "sample.txt"), "w") as f:
        f.write(text)
    print(f"training took {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
