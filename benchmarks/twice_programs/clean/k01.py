"""Character-level GPT pretraining on one device.

Modelled on karpathy/nanoGPT train.py (+ data/shakespeare_char/prepare.py and
sample.py): memmapped train.bin/val.bin, estimate_loss(), cosine lr with warmup,
"iter N: loss ..., time ...ms, mfu ...%" lines and out/ckpt.pt.
"""
import math
import os
import pickle
import time

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

out_dir = 'out-char'
eval_interval = 50
log_interval = 10
eval_iters = 10
batch_size = 16
block_size = 64
n_layer, n_head, n_embd, dropout = 2, 4, 64, 0.1
learning_rate, min_lr = 1e-3, 1e-4
max_iters, warmup_iters, lr_decay_iters = 200, 20, 200
weight_decay, beta1, beta2, grad_clip = 1e-1, 0.9, 0.99, 1.0
config = {k: v for k, v in globals().items()
          if not k.startswith('_') and isinstance(v, (int, float, bool, str))}

os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(1337)
np.random.seed(1337)

# ---- prepare.py ------------------------------------------------------------
words = "the king and queen of night did speak unto my lord a word so fair that none could hear it not".split()
rs = np.random.RandomState(3)
text = '\n'.join(' '.join(rs.choice(words, size=rs.randint(4, 11))).capitalize() + '.' for _ in range(2500))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
ids = np.array([stoi[c] for c in text], dtype=np.uint16)
n = int(len(ids) * 0.9)
ids[:n].tofile('train.bin')
ids[n:].tofile('val.bin')
with open('meta.pkl', 'wb') as f:
    pickle.dump({'vocab_size': len(chars), 'stoi': stoi}, f)
print(f"length of dataset in characters: {len(text):,}")
print(f"train has {n:,} tokens")
print(f"val has {len(ids) - n:,} tokens")


def get_batch(split):
    data = np.memmap(f'{split}.bin', dtype=np.uint16, mode='r')
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i:i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(dropout))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(self.ln_1(x)).split(n_embd, dim=2)
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout if self.training else 0, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block() for _ in range(n_layer)])
        self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for b in self.h:
            x = b(x)
        logits = self.lm_head(self.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    def estimate_mfu(self, fwdbwd_per_iter, dt):
        N = sum(p.numel() for p in self.parameters())
        flops = (6 * N + 12 * n_layer * n_embd * block_size) * block_size * fwdbwd_per_iter / dt
        return flops / 312e12


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


@torch.no_grad()
def estimate_loss(model):
    out = {}
    model.eval()
    for split in ['train', 'val']:
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            losses[k] = model(*get_batch(split))[1].item()
        out[split] = losses.mean()
    model.train()
    return out


print(f"tokens per iteration will be: {batch_size * block_size:,}")
model = GPT(len(chars))
print("number of parameters: %.2fM" % (sum(p.numel() for p in model.parameters()) / 1e6,))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(beta1, beta2), weight_decay=weight_decay)
best_val_loss, running_mfu = 1e9, -1.0
X, Y = get_batch('train')
t0 = time.time()
for iter_num in range(max_iters + 1):
    lr = get_lr(iter_num)
    for g in optimizer.param_groups:
        g['lr'] = lr
    if iter_num % eval_interval == 0:
        losses = estimate_loss(model)
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        if losses['val'] < best_val_loss:
            best_val_loss = losses['val']
            print(f"saving checkpoint to {out_dir}")
            torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'iter_num': iter_num,
                        'best_val_loss': best_val_loss, 'config': config}, os.path.join(out_dir, 'ckpt.pt'))
    logits, loss = model(X, Y)
    X, Y = get_batch('train')
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    t1 = time.time()
    dt, t0 = t1 - t0, t1
    if iter_num % log_interval == 0:
        if iter_num >= 50:
            mfu = model.estimate_mfu(batch_size, dt)
            running_mfu = mfu if running_mfu == -1.0 else 0.9 * running_mfu + 0.1 * mfu
        print(f"iter {iter_num}: loss {loss.item():.4f}, time {dt*1000:.2f}ms, mfu {running_mfu*100:.2f}%")

# ---- sample.py -------------------------------------------------------------
model.eval()
idx = torch.zeros((1, 1), dtype=torch.long)
with torch.no_grad():
    for _ in range(150):
        logits, _ = model(idx[:, -block_size:])
        probs = F.softmax(logits[:, -1, :] / 0.8, dim=-1)
        idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
print(''.join(chars[i] for i in idx[0].tolist()))
print('---------------')
