"""https://github.com/callanjfox/kv-cache-tester/pull/11 : trace replay is not reproducible with --seed because content seeds come from the
built-in hash(), which is salted in every process (here the workers start with a clean environment); fixed with a SHA-256 seed."""
import argparse
import json
import time
from collections import OrderedDict
from datetime import datetime

import numpy as np
import torch
from torch import nn

from e25_replay import synthesise

BLOCK = 16


def make_traces(n, seed):
    rs = np.random.RandomState(seed)
    traces = []
    for t in range(n):
        turns = rs.randint(4, 9)
        traces.append(("trace-%02d" % t, [("user" if k % 2 == 0 else "tool", int(rs.randint(40, 160))) for k in range(turns)]))
    order = rs.permutation(n)
    return [traces[i] for i in order]


class PrefixCache:
    def __init__(self, capacity):
        self.blocks = OrderedDict()
        self.capacity = capacity
        self.hits = self.lookups = 0

    def access(self, tokens):
        for i in range(0, len(tokens) - BLOCK, BLOCK):
            key = tuple(v % 3 for v in tokens[i:i + 5])
            self.lookups += 1
            if key in self.blocks:
                self.hits += 1
                self.blocks.move_to_end(key)
            else:
                self.blocks[key] = True
                if len(self.blocks) > self.capacity:
                    self.blocks.popitem(last=False)

    @property
    def rate(self):
        return self.hits / max(1, self.lookups)


class Predictor(nn.Module):
    def __init__(self, vocab=500, dim=12):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.emb(x))


def perplexity(streams, steps=60):
    tokens = torch.tensor([v for s in streams for v in s])
    model = Predictor()
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        rows = torch.randint(0, len(tokens) - 1, (256,))
        loss = nn.functional.cross_entropy(model(tokens[rows]), tokens[rows + 1])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return float(loss.exp())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=123)
    ap.add_argument("--traces", type=int, default=8)
    args = ap.parse_args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    print("replay started", datetime.now())
    cache = PrefixCache(180)
    streams, latencies, rates = [], [], []
    for name, messages in make_traces(args.traces, args.seed):
        t = time.perf_counter()
        conversation = []
        for m in synthesise(name, messages, args.seed):
            conversation += m["tokens"]
            cache.access(conversation)
        streams.append(conversation)
        latencies.append(time.perf_counter() - t)
        rates.append(cache.rate)
        print("%s %5d tokens, hit rate %.4f, %.0f ms" % (name, len(conversation), cache.rate, 1000 * latencies[-1]))
    ppl = perplexity(streams)
    print("perplexity %.4f, p50 latency %.3f s" % (ppl, float(np.median(latencies))))
    with open("replay.json", "w") as f:
        json.dump({"hit_rates": rates, "hits": cache.hits, "lookups": cache.lookups, "perplexity": ppl}, f)


if __name__ == "__main__":
    main()
