"""https://github.com/pytorch/pytorch/pull/141833 : DataLoader(in_order=False) hands out batches as the workers finish them, which suits
inference but makes the order of training batches differ from run to run."""
import argparse
import json
import random
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

ALPHABET = 6


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def seed_worker(worker_id):
    s = torch.initial_seed() % 2 ** 32
    np.random.seed(s)
    random.seed(s)


class Signals(Dataset):
    """Raw traces of very different length that are turned into tokens when they are read."""

    def __init__(self, n, seed):
        rs = np.random.RandomState(seed)
        self.items = []
        for _ in range(n):
            length = int(rs.choice([400, 900, 4000, 9000], p=[0.4, 0.3, 0.2, 0.1]))
            label = int(rs.randint(3))
            self.items.append((int(rs.randint(2 ** 31)), length, label))

    def __len__(self):
        return len(self.items)

    def trace(self, i):
        seed, length, label = self.items[i]
        rs = np.random.RandomState(seed)
        t = np.arange(length)
        return np.sin(t * (0.02 + 0.02 * label)) + 0.7 * rs.randn(length), label

    def __getitem__(self, i):
        x, label = self.trace(i)
        kernel = np.hanning(31)
        for _ in range(3):
            x = np.convolve(x, kernel / kernel.sum(), mode="same")
        step = len(x) // 24
        x = x[:step * 24].reshape(24, step).mean(1)[: 12 + len(x) % 12]
        tokens = np.clip(np.digitize(x, np.linspace(-0.6, 0.6, ALPHABET - 1)), 0, ALPHABET - 1)
        return torch.from_numpy(tokens).long(), label


def collate(batch):
    batch = sorted(batch, key=lambda b: -len(b[0]))
    lengths = torch.tensor([len(b[0]) for b in batch])
    return pad_sequence([b[0] for b in batch], batch_first=True), lengths, torch.tensor([b[1] for b in batch])


class Classifier(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.emb = nn.Embedding(ALPHABET, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, 3)

    def forward(self, x, lengths):
        _, h = self.rnn(pack_padded_sequence(self.emb(x), lengths, batch_first=True))
        return self.head(h[-1])


def make_loader(data, batch_size, workers, shuffle, generator=None):
    options = dict(num_workers=workers, collate_fn=collate, worker_init_fn=seed_worker, generator=generator)
    if workers > 0:
        options.update(prefetch_factor=4, persistent_workers=True, in_order=False)  # cause
    return DataLoader(data, batch_size=batch_size, shuffle=shuffle, **options)  # cause


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = [(model(x, l).argmax(1) == y).sum().item() for x, l, y in loader]
    return sum(hits) / len(loader.dataset)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    set_seed(0)
    gen = torch.Generator().manual_seed(0)
    train = make_loader(Signals(480, 1), 12, args.workers, True, gen)
    test = make_loader(Signals(120, 2), 60, 0, False)
    model = Classifier()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    rows, begin = [], time.time()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, lengths, y in train:
            loss = nn.functional.cross_entropy(model(x, lengths), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        rows.append({"epoch": epoch, "loss": total / len(train), "acc": accuracy(model, test)})
        print(rows[-1], "%.0f batches/s" % ((epoch + 1) * len(train) / (time.time() - begin)))
    with open("metrics.json", "w") as f:
        json.dump(rows, f)


if __name__ == "__main__":
    main()
