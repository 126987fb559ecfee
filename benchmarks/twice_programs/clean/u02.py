"""Character-level name generator.

Modelled on: karpathy/makemore (makemore.py): prints "step N | loss L | step time Mms", writes
TensorBoard events into work_dir, saves model.pt whenever the test loss improves, and prints samples
sorted into train / test / new.
"""
import math
import os
import random
import socket
import struct
import time
import zlib

import torch
from torch import nn
from torch.nn import functional as F

SYL = ["an", "be", "cor", "da", "el", "fin", "ga", "ha", "il", "jo", "ka", "lu", "ma", "ne", "ol", "pe", "ri", "sa", "ta", "vi"]
WORK_DIR = "out"


class SummaryWriter:
    """The part of a TensorBoard writer that is needed: scalars in a TFRecord event file."""

    def __init__(self, logdir):
        os.makedirs(logdir, exist_ok=True)
        name = "events.out.tfevents.%010d.%s.%d.0" % (time.time(), socket.gethostname(), os.getpid())
        self.f = open(os.path.join(logdir, name), "wb")
        self._record(self._event(b"\x1a" + self._bytes(b"brain.Event:2")))

    @staticmethod
    def _varint(n):
        out = bytearray()
        while n > 0x7F:
            out.append(n & 0x7F | 0x80)
            n >>= 7
        out.append(n)
        return bytes(out)

    def _bytes(self, b):
        return self._varint(len(b)) + b

    def _event(self, payload, step=None):
        body = b"\x09" + struct.pack("<d", time.time())
        if step is not None:
            body += b"\x10" + self._varint(step)
        return body + payload

    @staticmethod
    def _crc(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    def _record(self, data):
        head = struct.pack("<Q", len(data))
        self.f.write(head + struct.pack("<I", self._crc(head)) + data + struct.pack("<I", self._crc(data)))

    def add_scalar(self, tag, value, step):
        val = b"\x0a" + self._bytes(tag.encode()) + b"\x15" + struct.pack("<f", value)
        self._record(self._event(b"\x2a" + self._bytes(b"\x0a" + self._bytes(val)), step))

    def close(self):
        self.f.close()


def make_words(n=1200, seed=2147483647):
    rng = random.Random(seed)
    words = {"".join(rng.choice(SYL) for _ in range(rng.randint(2, 3))) for _ in range(n)}
    return sorted(words)


class CharDataset:
    def __init__(self, words, chars, block):
        self.words, self.block = words, block
        self.stoi = {c: i + 1 for i, c in enumerate(chars)}
        self.itos = {i: c for c, i in self.stoi.items()}
        xs, ys = [], []
        for w in words:
            ctx = [0] * block
            for c in w + ".":
                y = self.stoi.get(c, 0)
                xs.append(ctx)
                ys.append(y)
                ctx = ctx[1:] + [y]
        self.x, self.y = torch.tensor(xs), torch.tensor(ys)

    def __len__(self):
        return len(self.y)


class MLP(nn.Module):
    def __init__(self, vocab, block, emb=24, hidden=64):
        super().__init__()
        self.wte = nn.Embedding(vocab + 1, emb)
        self.mlp = nn.Sequential(nn.Linear(block * emb, hidden), nn.Tanh(), nn.Linear(hidden, vocab))

    def forward(self, x):
        return self.mlp(self.wte(x).flatten(1))


@torch.inference_mode()
def evaluate(model, ds, batch=256, max_batches=8):
    model.eval()
    losses = []
    for i in range(0, min(len(ds), batch * max_batches), batch):
        losses.append(F.cross_entropy(model(ds.x[i:i + batch]), ds.y[i:i + batch]).item())
    model.train()
    return sum(losses) / len(losses)


@torch.inference_mode()
def generate(model, ds, n, gen):
    ctx = torch.zeros(n, ds.block, dtype=torch.long)
    out = []
    for _ in range(12):
        p = F.softmax(model(ctx), dim=-1)
        nxt = torch.multinomial(p, 1, generator=gen)
        out.append(nxt)
        ctx = torch.cat([ctx[:, 1:], nxt], 1)
    rows = torch.cat(out, 1).tolist()
    return ["".join(ds.itos[c] for c in r[:r.index(0) if 0 in r else len(r)]) for r in rows]


def print_samples(model, train, test, gen):
    groups = {"in train": [], "in test": [], "new": []}
    for s in generate(model, train, 10, gen):
        key = "in train" if s in train.words else "in test" if s in test.words else "new"
        groups[key].append(s)
    print("-" * 80)
    for key, words in groups.items():
        print(f"{len(words)} samples that are {key}:")
        for w in words:
            print(w)
    print("-" * 80)


def main(seed=3407, max_steps=400, block=6):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    os.makedirs(WORK_DIR, exist_ok=True)
    writer = SummaryWriter(WORK_DIR)
    words = make_words()
    chars = sorted(set("".join(words)))
    perm = torch.randperm(len(words)).tolist()
    test_n = min(1000, len(words) // 10)
    train = CharDataset([words[i] for i in perm[:-test_n]], chars, block)
    test = CharDataset([words[i] for i in perm[-test_n:]], chars, block)
    print(f"number of examples in the dataset: {len(words)}")
    print(f"number of unique characters in the vocabulary: {len(chars)}")
    print(f"split up the dataset into {len(train.words)} training examples and {len(test.words)} test examples")
    model = MLP(len(chars) + 1, block)
    print("model #params:", sum(p.numel() for p in model.parameters()))
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01, betas=(0.9, 0.99), eps=1e-8)
    gen = torch.Generator().manual_seed(seed)
    best = None
    for step in range(max_steps + 1):
        t0 = time.time()
        ix = torch.randint(len(train), (64,), generator=gen)
        loss = F.cross_entropy(model(train.x[ix]), train.y[ix])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        t1 = time.time()
        if step % 25 == 0:
            print(f"step {step} | loss {loss.item():.4f} | step time {(t1 - t0) * 1000:.2f}ms")
        if step > 0 and step % 100 == 0:
            tr, te = evaluate(model, train), evaluate(model, test)
            writer.add_scalar("Loss/train", tr, step)
            writer.add_scalar("Loss/test", te, step)
            writer.add_scalar("perf/ms_per_step", (t1 - t0) * 1000, step)
            print(f"step {step} train loss: {tr} test loss: {te} (ppl {math.exp(te):.3f})")
            if best is None or te < best:
                path = os.path.join(WORK_DIR, "model.pt")
                print(f"test loss {te} is the best so far, saving model to {path}")
                torch.save(model.state_dict(), path)
                best = te
            print_samples(model, train, test, gen)
    crc = zlib.crc32(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    print(f"final weights crc32 {crc:08x}")
    writer.close()


if __name__ == "__main__":
    main()
