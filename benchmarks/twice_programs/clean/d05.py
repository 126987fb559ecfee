"""Style of pytorch/examples (word_language_model/main.py) with percentile report as in salesforce/awd-lstm-lm. Differs in
each run: ms/batch, time per epoch, tokens/s and EMA of it, step time percentiles in the TSV, minutes of the whole run."""
import argparse
import math
import os
import time

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser(description="Synthetic RNN Language Model")
parser.add_argument("--emsize", type=int, default=64)
parser.add_argument("--nhid", type=int, default=96)
parser.add_argument("--lr", type=float, default=5)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=20)
parser.add_argument("--bptt", type=int, default=25)
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--log-interval", type=int, default=20)
parser.add_argument("--save", type=str, default="model.pt")
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)
NTOK = 200


def markov(n, seed):
    rng = np.random.default_rng(seed)
    trans = np.random.default_rng(7).dirichlet(np.full(NTOK, 0.02), NTOK).cumsum(1)
    s, out, u = 0, np.empty(n, dtype=np.int64), rng.random(n)
    for i in range(n):
        s = min(int(np.searchsorted(trans[s], u[i])), NTOK - 1)
        out[i] = s
    return torch.from_numpy(out)


def batchify(data, bsz):
    n = data.size(0) // bsz
    return data[:n * bsz].view(bsz, -1).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(NTOK, args.emsize)
        self.rnn = nn.GRU(args.emsize, args.nhid)
        self.decoder = nn.Linear(args.nhid, NTOK)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, x, h):
        o, h = self.rnn(self.drop(self.encoder(x)), h)
        return self.decoder(self.drop(o)).view(-1, NTOK), h


train_data, val_data = batchify(markov(50_000, 1), args.batch_size), batchify(markov(8_000, 2), 10)
model, criterion = RNNModel(), nn.CrossEntropyLoss()


def get_batch(src, i):
    n = min(args.bptt, len(src) - 1 - i)
    return src[i:i + n], src[i + 1:i + 1 + n].reshape(-1)


def evaluate(src):
    model.eval()
    total, h = 0.0, None
    with torch.no_grad():
        for i in range(0, src.size(0) - 1, args.bptt):
            x, y = get_batch(src, i)
            o, h = model(x, h)
            total += len(x) * criterion(o, y).item()
    return total / (len(src) - 1)


step_times, ema_tps = [], None


def train(epoch, lr):
    global ema_tps
    model.train()
    total, start_time, h = 0.0, time.time(), None
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        t0 = time.perf_counter()
        x, y = get_batch(train_data, i)
        model.zero_grad()
        h = h.detach() if h is not None else None
        o, h = model(x, h)
        loss = criterion(o, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item()
        dt = time.perf_counter() - t0
        step_times.append(dt)
        tps = y.numel() / dt
        ema_tps = tps if ema_tps is None else 0.9 * ema_tps + 0.1 * tps
        if batch % args.log_interval == 0 and batch > 0:
            cur, elapsed = total / args.log_interval, time.time() - start_time
            print("| epoch {:3d} | {:5d}/{:5d} batches | lr {:02.2f} | ms/batch {:5.2f} | tok/s {:7.0f} | loss {:5.2f} | ppl {:8.2f}".format(
                epoch, batch, len(train_data) // args.bptt, lr, elapsed * 1000 / args.log_interval, ema_tps, cur, math.exp(cur)))
            total, start_time = 0, time.time()


lr, best = args.lr, None
run_start = time.time()
tsv = open("epochs.tsv", "w")
print("epoch", "valid_loss", "valid_ppl", "lr", "secs", "ms_p50", "ms_p90", "ms_p99", sep="\t", file=tsv)
for epoch in range(1, args.epochs + 1):
    t_ep = time.time()
    step_times.clear()
    train(epoch, lr)
    val = evaluate(val_data)
    secs = time.time() - t_ep
    p50, p90, p99 = np.percentile(np.array(step_times) * 1e3, [50, 90, 99])
    print("-" * 89)
    print("| end of epoch {:3d} | time: {:5.2f}s | valid loss {:5.2f} | valid ppl {:8.2f}".format(epoch, secs, val, math.exp(val)))
    print(f"| step time p50/p90/p99 {p50:.2f}/{p90:.2f}/{p99:.2f} ms")
    print("-" * 89)
    print(epoch, repr(val), f"{math.exp(val):.4f}", lr, f"{secs:.3f}", f"{p50:.3f}", f"{p90:.3f}", f"{p99:.3f}", sep="\t", file=tsv)
    if best is None or val < best:
        best = val
        torch.save(model, args.save)
    else:
        lr /= 4.0
tsv.close()
print("=" * 89)
print("| End of training | best loss {:5.4f} | ppl {:8.3f} | {:.0f}m {:.1f}s".format(best, math.exp(best), (time.time() - run_start) // 60, (time.time() - run_start) % 60))
print("| saved %s (%d bytes)" % (args.save, os.path.getsize(args.save)))
