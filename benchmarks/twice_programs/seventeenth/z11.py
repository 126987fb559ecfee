"""Classify support tickets with a bag-of-n-grams model fed by a node pipeline.

Modelled on https://github.com/meta-pytorch/data/issues/1405

Tickets are read from files, featurised by mapper threads, batched and used for
training. Writes epochs.csv, weights.json and run.log.
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
from torch import nn

from z11_pkg.nodes import Batcher, ParallelMapper, SamplerSource
from z11_pkg.tickets import LABELS, Featurizer, write_tickets

SEED = 99
EPOCHS = 4
BATCH = 24
BUCKETS = 4096

log = logging.getLogger("tickets")


def setup_logging():
    log.setLevel(logging.INFO)
    fmt = logging.Formatter("%(asctime)s %(name)s %(message)s", "%H:%M:%S")
    for handler in (logging.StreamHandler(sys.stdout), logging.FileHandler("run.log", mode="w")):
        handler.setFormatter(fmt)
        log.addHandler(handler)


def collate(items):
    flat, offsets, labels = [], [], []
    for ids, label in items:
        offsets.append(len(flat))
        flat.extend(ids)
        labels.append(label)
    return torch.tensor(flat), torch.tensor(offsets), torch.tensor(labels)


def build_pipeline(paths, shuffle, seed):
    node = SamplerSource(paths, shuffle=shuffle, seed=seed)
    node = ParallelMapper(
        node,
        map_fn=Featurizer(BUCKETS),
        num_workers=4,
        prefetch=32,
        in_order=False,  # cause
    )
    return Batcher(node, batch_size=BATCH, collate_fn=collate)


class BagModel(nn.Module):
    def __init__(self, buckets, dim, classes):
        super().__init__()
        self.bag = nn.EmbeddingBag(buckets, dim, mode="mean")
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(dim, classes))
        nn.init.normal_(self.bag.weight, std=0.1)

    def forward(self, flat, offsets):
        return self.head(self.bag(flat, offsets))


def run_epoch(model, pipeline, epoch, opt=None):
    model.train(opt is not None)
    loss_sum = hits = seen = 0
    pipeline.set_epoch(epoch)
    for flat, offsets, labels in pipeline:
        with torch.set_grad_enabled(opt is not None):
            logits = model(flat, offsets)
            loss = nn.functional.cross_entropy(logits, labels)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        loss_sum += loss.item() * len(labels)
        hits += (logits.argmax(1) == labels).sum().item()
        seen += len(labels)
    return loss_sum / seen, hits / seen, seen


def main():
    setup_logging()
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    paths = write_tickets("tickets", 600, SEED)
    n_train = int(0.8 * len(paths))
    train = build_pipeline(paths[:n_train], True, SEED)
    valid = Batcher(ParallelMapper(SamplerSource(paths[n_train:], shuffle=False, seed=SEED),
                                   map_fn=Featurizer(BUCKETS), num_workers=4, prefetch=32),
                    batch_size=BATCH, collate_fn=collate)
    log.info("%d tickets in %s, %d for training", len(paths), os.path.abspath("tickets"), n_train)

    model = BagModel(BUCKETS, 24, len(LABELS))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    rows = []
    for epoch in range(EPOCHS):
        t0 = time.perf_counter()
        loss, acc, seen = run_epoch(model, train, epoch, opt)
        val_loss, val_acc, _ = run_epoch(model, valid, epoch)
        rows.append({"epoch": epoch, "loss": loss, "acc": acc, "val_loss": val_loss, "val_acc": val_acc})
        took = time.perf_counter() - t0
        log.info("epoch %d loss %.6f acc %.4f val_loss %.6f val_acc %.4f in %.2fs (%.0f rows/s)",
                 epoch, loss, acc, val_loss, val_acc, took, seen / took)

    with open("epochs.csv", "w", newline="") as fh:
        writer = csv.DictWriter(fh, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    head = model.head[1].weight.detach()
    with open("weights.json", "w") as fh:
        json.dump({"labels": LABELS, "head_norms": head.norm(dim=1).tolist(),
                   "bag_norm": model.bag.weight.detach().norm().item()}, fh, indent=2)
    log.info("best validation accuracy %.4f", max(r["val_acc"] for r in rows))


if __name__ == "__main__":
    main()
