"""https://github.com/meta-pytorch/data/pull/1523 - with in_order=False the loader hands out batches as workers finish them, which is not reproducible (documented after issue 1405)."""
import json
import os
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 21
VOCAB = 200


def make_corpus(n=900):
    rng = np.random.default_rng(SEED)
    topic_words = rng.dirichlet(np.full(VOCAB, 0.05), size=3)
    docs = []
    for _ in range(n):
        topic = int(rng.integers(3))
        length = int(rng.integers(20, 400))
        docs.append((rng.choice(VOCAB, size=length, p=topic_words[topic]), topic))
    return docs


class Docs(Dataset):
    """Turns a token list into bigram-smoothed counts; long texts cost more."""

    def __init__(self, docs):
        self.docs = docs

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        tokens, topic = self.docs[i]
        vec = np.zeros(VOCAB, np.float32)
        for a, b in zip(tokens[:-1], tokens[1:]):
            vec[a] += 1.0
            vec[b] += 0.5
        return torch.from_numpy(np.log1p(vec)), topic


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(VOCAB, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.net(x)


def seed_worker(worker_id):
    s = torch.initial_seed() % 2**32
    np.random.seed(s)
    random.seed(s)


def build_loader(docs, train=True):
    gen = torch.Generator()
    gen.manual_seed(SEED)
    options = dict(batch_size=16, num_workers=2, worker_init_fn=seed_worker, generator=gen)
    if not train:
        return DataLoader(Docs(docs), batch_size=100)
    return DataLoader(Docs(docs), shuffle=True, persistent_workers=True, in_order=False, **options)  # cause


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    docs = make_corpus()
    loader = build_loader(docs[:750])
    test = build_loader(docs[750:], train=False)
    model = Classifier()
    opt = torch.optim.SGD(model.parameters(), lr=0.004, momentum=0.9)
    print("main process", os.getpid(), time.strftime("%H:%M:%S"))
    report = []
    for epoch in range(3):
        t0, losses = time.perf_counter(), []
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
        report.append({"epoch": epoch, "loss": float(np.mean(losses)), "last": losses[-1], "acc": right / 150,
                       "seconds": round(time.perf_counter() - t0, 3)})
        print(report[-1])
    json.dump(report, open("report.json", "w"))


if __name__ == "__main__":
    main()
