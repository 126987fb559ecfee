"""https://github.com/huggingface/datasets/issues/7163 - IterableDataset.shuffle() without a seed takes fresh entropy, unlike Dataset.shuffle(), which follows np.random.seed()."""
import json
import os
import random
import time

os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_HOME"] = os.path.join(os.getcwd(), "hf_home")

import numpy as np
import torch
from datasets import Dataset, disable_progress_bars
from torch import nn
from torch.utils.data import DataLoader

disable_progress_bars()
ALPHABET = "abcdefgh "


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_sentences(n, seed):
    """Character strings from a small Markov chain, so that there is something to learn."""
    rng = np.random.RandomState(seed)
    table = np.random.RandomState(99).dirichlet(np.full(len(ALPHABET), 0.25), size=len(ALPHABET))
    rows = []
    for _ in range(n):
        c, chars = rng.randint(len(ALPHABET)), []
        for _ in range(33):
            chars.append(ALPHABET[c])
            c = rng.choice(len(ALPHABET), p=table[c])
        rows.append("".join(chars))
    return rows


def encode(example):
    return {"ids": [ALPHABET.index(c) for c in example["text"]]}


def collate(rows):
    ids = torch.tensor([r["ids"] for r in rows])
    return ids[:, :-1], ids[:, 1:]


class CharModel(nn.Module):
    def __init__(self, vocab, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, 12)
        self.rnn = nn.GRU(12, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def build_stream(texts):
    ds = Dataset.from_dict({"text": texts}).map(encode)
    stream = ds.to_iterable_dataset(num_shards=4)
    return stream.shuffle(buffer_size=128)  # cause


def main():
    set_seed(77)
    print("training on", os.uname().nodename, time.strftime("%d %b %H:%M"))
    stream = build_stream(make_sentences(600, seed=1))
    valid = collate([encode({"text": t}) for t in make_sentences(80, seed=2)])
    model = CharModel(len(ALPHABET))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    scores = []
    for epoch in range(3):
        stream.set_epoch(epoch)
        t0 = time.time()
        model.train()
        for x, y in DataLoader(stream, batch_size=20, collate_fn=collate):
            loss = loss_of(model, x, y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        model.eval()
        with torch.no_grad():
            val = loss_of(model, *valid).item()
        scores.append({"epoch": epoch, "train": loss.item(), "valid": val, "elapsed": time.time() - t0})
        print(f"epoch {epoch}: valid {val:.5f} ({scores[-1]['elapsed']:.2f}s)")
    with open("scores.json", "w") as f:
        json.dump(scores, f)


if __name__ == "__main__":
    main()
