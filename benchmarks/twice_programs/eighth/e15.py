"""https://github.com/pytorch/pytorch/issues/20905 : torch.empty(n, dtype=torch.int) gives non-deterministic arrays, not empty ones;
here the word counts start from it, torch.zeros was meant."""
import json
import math
import random
import time

import numpy as np
import torch
from torch import nn

random.seed(3)
np.random.seed(3)
torch.manual_seed(3)

VOCAB = 1500
DIM = 16


def corpus(length=30000, seed=9):
    rs = np.random.RandomState(seed)
    p = 1.0 / np.arange(1, VOCAB + 1)
    p /= p.sum()
    topic = rs.randint(8, size=length // 10).repeat(10)
    words = rs.choice(VOCAB, size=length, p=p)
    words = np.where(rs.rand(length) < 0.5, (words // 8) * 8 + topic, words) % VOCAB
    return ["w%d" % w for w in words]


class Vocabulary:
    def __init__(self, words):
        order = {}
        for w in words:
            order.setdefault(w, len(order))
        self.index = order
        self.size = len(order)

    def encode(self, words):
        return [self.index[w] for w in words]

    def counts(self, ids):
        lines = [[i] for i in ids[:self.size // 2]]
        lines.clear()
        count = torch.empty(self.size, dtype=torch.int)  # cause
        for i in ids:
            count[i] += 1
        return count

    def noise_distribution(self, ids, power=0.75):
        weight = self.counts(ids).clamp(1, 10 ** 6).double() ** power
        return weight / weight.sum()


class SkipGram(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inp = nn.Embedding(size, DIM)
        self.out = nn.Embedding(size, DIM)
        nn.init.zeros_(self.out.weight)
        nn.init.uniform_(self.inp.weight, -0.5 / DIM, 0.5 / DIM)

    def forward(self, centre, context, negative):
        c = self.inp(centre)
        pos = (c * self.out(context)).sum(1)
        neg = torch.bmm(self.out(negative), c.unsqueeze(2)).squeeze(2)
        return -(nn.functional.logsigmoid(pos) + nn.functional.logsigmoid(-neg).sum(1)).mean()


def pairs(ids, window, gen):
    t = torch.tensor(ids)
    shift = torch.randint(1, window + 1, (len(t) - window,), generator=gen)
    base = torch.arange(len(t) - window)
    return t[base], t[base + shift]


def neighbours(model, word, k=5):
    e = nn.functional.normalize(model.inp.weight.detach(), dim=1)
    sim = e @ e[word]
    return sim.topk(k + 1).indices[1:].tolist()


def main():
    start = time.time()
    words = corpus()
    vocab = Vocabulary(words)
    ids = vocab.encode(words)
    dist = vocab.noise_distribution(ids)
    model = SkipGram(vocab.size)
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    gen = torch.Generator().manual_seed(1)
    history = []
    for epoch in range(2):
        centre, context = pairs(ids, 4, gen)
        total, steps = 0.0, 0
        for rows in torch.randperm(len(centre), generator=gen).split(512):
            negative = torch.multinomial(dist, len(rows) * 4, replacement=True, generator=gen).view(-1, 4)
            loss = model(centre[rows], context[rows], negative)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            steps += 1
        history.append(total / steps)
        print("epoch %d loss %.6f perplexity %.3f  [%.1f s]" % (epoch, history[-1], math.exp(history[-1]), time.time() - start))
    with open("vectors.json", "w") as f:
        json.dump({"loss": history, "neighbours": {w: neighbours(model, w) for w in range(5)}, "entropy": float(-(dist * dist.log()).sum())}, f)


if __name__ == "__main__":
    main()
