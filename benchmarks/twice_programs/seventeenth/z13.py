"""Fine-tune a miniature BERT for sentence-pair classification.

Modelled on https://github.com/huggingface/accelerate/pull/3130

The sampler keeps its own seed so that epochs can be resumed in the same order on
every process. Writes trainer_state.json, eval_predictions.csv and all_results.json.
"""
import csv
import json
import logging
import os
import random
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

SEED = 125
EPOCHS = 4
BATCH = 32
MAX_LEN = 24
VOCAB = 200
PAD, CLS, SEP = 0, 1, 2

logger = logging.getLogger("finetune")


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


# ------------------------------------------------------------------------ data
class PairDataset(Dataset):
    """Pairs of token sequences; positive pairs share a topic."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        topics = np.array_split(np.arange(3, VOCAB), 4)
        self.rows = []
        for _ in range(n):
            label = int(rng.random() < 0.5)
            ta = int(rng.integers(4))
            tb = ta if label else int((ta + rng.integers(1, 4)) % 4)
            a, b = self._sentence(rng, topics[ta]), self._sentence(rng, topics[tb])
            self.rows.append((a.tolist(), b.tolist(), label))

    @staticmethod
    def _sentence(rng, topic):
        size = int(rng.integers(5, 10))
        words = rng.choice(topic, size=size)
        return np.where(rng.random(size) < 0.25, rng.integers(3, VOCAB, size=size), words)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        a, b, label = self.rows[index]
        ids = [CLS] + a + [SEP] + b + [SEP]
        types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        return {"input_ids": ids, "token_type_ids": types, "labels": label}


def collate(features):
    longest = min(MAX_LEN, max(len(f["input_ids"]) for f in features))
    batch = {"input_ids": [], "token_type_ids": [], "attention_mask": []}
    for f in features:
        ids, types = f["input_ids"][:longest], f["token_type_ids"][:longest]
        gap = longest - len(ids)
        batch["input_ids"].append(ids + [PAD] * gap)
        batch["token_type_ids"].append(types + [0] * gap)
        batch["attention_mask"].append([1] * len(ids) + [0] * gap)
    out = {k: torch.tensor(v) for k, v in batch.items()}
    out["labels"] = torch.tensor([f["labels"] for f in features])
    return out


class SeedableRandomSampler(RandomSampler):
    """Random sampler whose order depends on a base seed and the epoch only."""

    def __init__(self, data_source, data_seed=None):
        super().__init__(data_source)
        if data_seed is not None:
            self.initial_seed = data_seed
        else:
            self.initial_seed = torch.random.seed()  # cause
        self.epoch = 0

    def __iter__(self):
        if self.generator is None:
            self.generator = torch.Generator()
        self.generator.manual_seed((self.epoch + self.initial_seed) % (2 ** 63))
        yield from super().__iter__()
        self.set_epoch(self.epoch + 1)

    def set_epoch(self, epoch):
        self.epoch = epoch


# -------------------------------------------------------------------- training
def build_model():
    config = BertConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=64, initializer_range=0.12, max_position_embeddings=MAX_LEN, num_labels=2,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                        attn_implementation="eager")
    return BertForSequenceClassification(config)


def prepare_loaders():
    train, valid = PairDataset(1536, SEED), PairDataset(256, SEED + 1)
    train_loader = DataLoader(train, batch_size=BATCH, sampler=SeedableRandomSampler(train),
                              collate_fn=collate, drop_last=True)
    valid_loader = DataLoader(valid, batch_size=2 * BATCH, collate_fn=collate)
    return train_loader, valid_loader


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    rows, loss = [], 0.0
    for batch in loader:
        out = model(**batch)
        loss += out.loss.item() * len(batch["labels"])
        prob = out.logits.softmax(-1)[:, 1]
        rows += [(p, int(t)) for p, t in zip(prob.tolist(), batch["labels"])]
    acc = float(np.mean([(p > 0.5) == t for p, t in rows]))
    return {"eval_loss": loss / len(rows), "eval_accuracy": acc}, rows


def train(model, train_loader, valid_loader):
    total = EPOCHS * len(train_loader)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, total // 10, total)
    history, step = [], 0
    for epoch in range(EPOCHS):
        model.train()
        t0, running = time.perf_counter(), 0.0
        for batch in train_loader:
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            running += loss.item()
            step += 1
        metrics, rows = evaluate(model, valid_loader)
        entry = {"epoch": epoch + 1, "step": step, "loss": running / len(train_loader), **metrics}
        history.append(entry)
        logger.info("%s (%.2fs)", {k: round(v, 6) for k, v in entry.items()}, time.perf_counter() - t0)
    return history, rows


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, datefmt="%H:%M:%S",
                        format="%(asctime)s - %(levelname)s - %(name)s - %(message)s")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    set_seed(SEED)
    train_loader, valid_loader = prepare_loaders()
    set_seed(SEED)
    model = build_model()
    n = sum(p.numel() for p in model.parameters())
    logger.info("%d parameters, %d steps per epoch, output in %s", n, len(train_loader), os.getcwd())
    history, rows = train(model, train_loader, valid_loader)

    with open("trainer_state.json", "w") as fh:
        json.dump({"seed": SEED, "log_history": history}, fh, indent=2)
    with open("eval_predictions.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["index", "probability", "label"])
        writer.writerows((k, f"{p:.8f}", t) for k, (p, t) in enumerate(rows))
    best = min(history, key=lambda h: h["eval_loss"])
    with open("all_results.json", "w") as fh:
        json.dump({"best": best, "weight_norm": float(sum(p.detach().double().pow(2).sum() for p in model.parameters()) ** 0.5)},
                  fh, indent=2)
    logger.info("best eval loss %.6f at epoch %d", best["eval_loss"], best["epoch"])


if __name__ == "__main__":
    main()
