"""https://github.com/huggingface/tokenizers/issues/1794 - WordPieceTrainer is not deterministic: the '##' subword
ids are given in the iteration order of a randomly keyed hash map in the Rust extension, so vocabularies differ."""
import argparse
import json
import random
import time
from datetime import datetime

import numpy as np
import torch
from torch import nn
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.trainers import WordPieceTrainer
from tqdm import tqdm

POSITIVE = ["lumo", "trela", "sandu", "pelor", "quiben", "mirasol", "tavenu"]
NEGATIVE = ["grask", "dolmu", "vorten", "hubrik", "skaldor", "nembru", "zotka"]
NEUTRAL = ["ka", "lomi", "be", "tresan", "duka", "orlo", "miqui", "bepel", "santre", "dulo", "kalomi"]


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


def make_reviews(n, rng):
    rows = []
    for _ in range(n):
        label = rng.randint(0, 1)
        pool = POSITIVE if label else NEGATIVE
        words = [rng.choice(NEUTRAL) + rng.choice(["", "s", "ta", "nel"]) for _ in range(rng.randint(6, 14))]
        for _ in range(rng.randint(1, 3)):
            words.insert(rng.randrange(len(words)), rng.choice(pool) + rng.choice(["", "ta", "ri"]))
        rows.append((" ".join(words), label))
    return rows


def build_tokenizer(texts, vocab_size):
    tok = Tokenizer(WordPiece(unk_token="[UNK]"))
    tok.normalizer = Lowercase()
    tok.pre_tokenizer = Whitespace()
    trainer = WordPieceTrainer(vocab_size=vocab_size, special_tokens=["[PAD]", "[UNK]"], show_progress=False)
    tok.train_from_iterator(texts, trainer=trainer)  # cause
    tok.enable_padding(pad_id=0, pad_token="[PAD]")
    tok.enable_truncation(48)
    return tok


class Classifier(nn.Module):
    def __init__(self, vocab_size, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(2 * dim, 2)

    def forward(self, ids):
        h, _ = self.gru(self.embed(ids))
        mask = (ids > 0).unsqueeze(-1)
        pooled = (h * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.head(self.drop(pooled))


def batches(tok, rows, size, order):
    for i in range(0, len(order), size):
        part = [rows[j] for j in order[i:i + size]]
        enc = tok.encode_batch([t for t, _ in part])
        yield torch.tensor([e.ids for e in enc]), torch.tensor([y for _, y in part])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=42)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--vocab-size", type=int, default=120)
    args = ap.parse_args()
    print("started", datetime.now().isoformat(timespec="seconds"))
    seed_everything(args.seed)
    rows = make_reviews(1200, random.Random(7))
    train, test = rows[:1000], rows[1000:]
    tok = build_tokenizer([t for t, _ in train], args.vocab_size)
    print("vocabulary:", tok.get_vocab_size(), "| sample:", tok.encode(test[0][0]).tokens[:8])

    model = Classifier(tok.get_vocab_size())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss()
    history = []
    for epoch in range(args.epochs):
        t0 = time.time()
        model.train()
        order = torch.randperm(len(train)).tolist()
        total = 0.0
        for ids, y in tqdm(batches(tok, train, 50, order), total=20, desc=f"epoch {epoch}"):
            opt.zero_grad()
            loss = loss_fn(model(ids), y)
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        model.eval()
        with torch.no_grad():
            hits = sum((model(ids).argmax(1) == y).sum().item() for ids, y in batches(tok, test, 100, range(len(test))))
        history.append({"epoch": epoch, "loss": total / len(train), "accuracy": hits / len(test)})
        print(f"epoch {epoch} loss {history[-1]['loss']:.6f} acc {history[-1]['accuracy']:.3f} ({time.time() - t0:.2f}s)")
    with open("history.json", "w") as f:
        json.dump(history, f, indent=1)


if __name__ == "__main__":
    main()
